// Package page writes a report as one HTML page that needs nothing else: no network, no server, no installation. It can
// be mailed, and opened in ten years.
//
//	page.html      the frame            ┐
//	page.css       colours, light, dark │
//	web/*.js       charts and tables    ├─ Write ──> one file
//	assets/        D3, as published     │
//	report.Report  the figures, JSON    ┘
//
// Where a server shows it (dsi ui), it asks that server for newer figures, and nobody else for anything.
//
// Every figure is the report's: the scripts add up what a search finds, and nothing else. Text is only ever put into
// the document as text, so that the name of a feature cannot become markup, and the page's Content-Security-Policy
// allows its two scripts and its style sheet, by their hashes, and nothing from anywhere: what is smuggled in is not
// run.
package page

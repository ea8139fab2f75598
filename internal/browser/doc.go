// Package browser drives a headless Chromium, for tests of pages and measurements of them.
//
//	test ── JSON, NUL ──> pipe ──> chromium --headless ──> page
//	     <── answers, events ──
//
// It speaks the Chrome DevTools Protocol over two pipes: no port is opened, no server runs, and nothing is reachable
// from elsewhere. What the page writes to its console, what it throws, and every request that it makes is kept, so that
// a test can say that there was none.
package browser

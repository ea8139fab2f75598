package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/dsistore/dsistore/tools/report"
)

//go:embed web assets
var files embed.FS

// scripts are our own, in an order in which each needs only those before it; what they declare is theirs together and
// nobody else's.
var scripts = []string{"format", "dom", "chart", "waterfall", "curve", "treemap", "trend", "table", "features",
	"sections", "live", "main"}

// Live says how a page keeps up with a server.
type Live struct {
	Version string // of the report, in letters and digits: what "report?seen=VERSION" beside the page is asked with
	Seconds int    // between two questions
}

// Write writes the page of a report.
func Write(w io.Writer, r *report.Report) error { return WriteLive(w, r, Live{}) }

// WriteLive writes the page for a server that answers, beside it, "report?seen=VERSION": with 204 as long as the
// report is of that version, else with what Encode makes of the newer one, and its version as Dsistore-Version in the
// header. Dsistore-Failed in the header says, escaped as in a path, why there may be none although the store changed.
func WriteLive(w io.Writer, r *report.Report, live Live) error {
	data, err := Encode(r)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	// The licence of the library asks to be in every copy.
	library := "/*\n" + file("assets/LICENSE") + "*/\n" + file("assets/d3.min.js")
	var code strings.Builder
	code.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		code.WriteString(file("web/" + name + ".js"))
	}
	code.WriteString("})();\n")
	style := file("web/page.css")
	attributes, connect := "", ""
	if live.Version != "" {
		attributes = fmt.Sprintf(` data-version="%s" data-seconds="%d"`, html.EscapeString(live.Version), live.Seconds)
		connect = "; connect-src 'self'"
	}

	_, err = strings.NewReplacer(
		"{{live}}", attributes,
		"{{policy}}", policy(style, library, code.String())+connect,
		"{{title}}", html.EscapeString(title(r)),
		"{{style}}", style,
		"{{report}}", string(data),
		"{{library}}", library,
		"{{code}}", code.String(),
	).WriteString(w, file("web/page.html"))
	return err
}

func title(r *report.Report) string {
	if len(r.Tables) == 1 {
		return r.Tables[0].Table + " · dsistat"
	}
	return r.Store + " · dsistat"
}

// file returns one of the files in the program, with the line ends that a browser sees and hashes.
func file(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // a file of ours that is not there: every test of this package fails
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// policy is the Content-Security-Policy: these scripts, this style, and nothing from anywhere. The icon is an empty
// data URL, so that browsers ask no server for one.
func policy(style string, scripts ...string) string {
	var hashes []string
	for _, s := range scripts {
		hashes = append(hashes, hash(s))
	}
	return "default-src 'none'; script-src " + strings.Join(hashes, " ") + "; style-src " + hash(style) +
		"; img-src data:; base-uri 'none'; form-action 'none'"
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Encode is the report as JSON, with the features of each table as columns. It has no "<", ">" or "&", which would mean
// something to HTML: they are escaped.
func Encode(r *report.Report) ([]byte, error) {
	top := struct {
		*report.Report
		Tables *struct{} `json:"tables,omitempty"` // in place of the report's own: nothing
	}{Report: r}
	b, err := json.Marshal(top)
	if err != nil {
		return nil, err
	}
	b = append(b[:len(b)-1], `,"tables":[`...)
	for i := range r.Tables {
		if i > 0 {
			b = append(b, ',')
		}
		table := struct {
			*report.Table
			Features *struct{} `json:"features,omitempty"`
		}{Table: &r.Tables[i]}
		text, err := json.Marshal(table)
		if err != nil {
			return nil, err
		}
		b = append(append(b, text[:len(text)-1]...), `,"features":`...)
		if b, err = appendColumns(b, r.Tables[i].Features); err != nil {
			return nil, err
		}
		b = append(b, '}')
	}
	return append(b, ']', '}'), nil
}

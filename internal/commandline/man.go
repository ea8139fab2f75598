package commandline

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Man writes a man page of the program, and one of each of its commands, into a directory, which it makes: prog.1,
// prog-copy.1, prog-tables-list.1.
func (p *Program) Man(grammar any, dir string) error {
	b, root := p.bind(grammar)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return b.man(root, dir)
}

func (b *binder) man(c *cobra.Command, dir string) error {
	name := filepath.Join(dir, manName(c)+".1")
	if err := os.WriteFile(name, b.manPage(c), 0o666); err != nil {
		return err
	}
	for _, sub := range c.Commands() {
		if err := b.man(sub, dir); err != nil {
			return err
		}
	}
	return nil
}

// manName is the name of a command's man page.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns a command's man page.
func (b *binder) manPage(c *cobra.Command) []byte {
	var out bytes.Buffer
	section := func(name string) { out.WriteString(".SH " + name + "\n") }
	item := func(name, text string) { fmt.Fprintf(&out, ".TP\n%s\n%s\n", name, roff(text)) }
	what := c.Short
	if what == "" {
		what = c.Long
	}
	fmt.Fprintf(&out, ".TH \"%s\" 1 \"\" \"%s %s\"\n", roff(strings.ToUpper(manName(c))), roff(b.program.Name),
		roff(b.program.Version))
	section("NAME")
	fmt.Fprintf(&out, "%s \\- %s\n", roff(manName(c)), roff(strings.TrimSuffix(what, ".")))
	section("SYNOPSIS")
	fmt.Fprintf(&out, "\\fB%s\\fP%s\n", roff(c.CommandPath()), roff(b.synopsis(c)))
	section("DESCRIPTION")
	out.WriteString(roff(what) + "\n")
	if c.Long != "" && c.Long != what {
		out.WriteString(".PP\n" + roff(c.Long) + "\n")
	}
	for i, a := range b.arguments[c] {
		if i == 0 {
			section("ARGUMENTS")
		}
		item("\\fI"+roff(a.String())+"\\fP", a.help)
	}
	if c.HasAvailableSubCommands() {
		section("COMMANDS")
		for _, sub := range c.Commands() {
			item("\\fB"+roff(sub.Name())+"\\fP", sub.Short)
		}
	}
	section("OPTIONS")
	flag := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "\\fB\\-\\-" + roff(f.Name) + "\\fP"
		if f.Shorthand != "" {
			name = "\\fB\\-" + f.Shorthand + "\\fP, " + name
		}
		text := f.Usage
		if f.Value.Type() != "bool" {
			if name += " " + roff(f.Value.Type()); f.DefValue != "" {
				text += " (default " + f.DefValue + ")"
			}
		}
		item(name, text)
	}
	c.LocalNonPersistentFlags().VisitAll(flag)
	c.PersistentFlags().VisitAll(flag)
	c.InheritedFlags().VisitAll(flag)
	if c.Example != "" {
		section("EXAMPLE")
		out.WriteString(".nf\n" + roff(c.Example) + "\n.fi\n")
	}
	var others []string
	if c.HasParent() {
		others = append(others, manName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		others = append(others, manName(sub))
	}
	slices.Sort(others)
	for i, name := range others {
		if i == 0 {
			section("SEE ALSO")
		} else {
			out.WriteString(",\n")
		}
		out.WriteString("\\fB" + roff(name) + "\\fP(1)")
	}
	out.WriteString("\n")
	return out.Bytes()
}

// roff returns text as a man page has it: nothing in it is a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

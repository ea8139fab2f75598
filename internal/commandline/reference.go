package commandline

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Reference returns Markdown about every command of grammar, a pointer to the program's struct: what help says, as
// headings and tables.
func (p *Program) Reference(grammar any) string {
	b, root := p.bind(grammar)
	var out bytes.Buffer
	fmt.Fprintf(&out, "## %s\n\n%s\n\n    %s\n", p.Name, markdown(p.Description), root.CommandPath()+b.synopsis(root))
	out.WriteString("\nFlags of all commands:\n")
	b.flagTable(&out, root.PersistentFlags())
	b.sections(&out, root)
	return out.String()
}

// sections writes the commands below c, in their groups.
func (b *binder) sections(out *bytes.Buffer, c *cobra.Command) {
	group := ""
	for _, sub := range c.Commands() {
		if sub.GroupID != group {
			group = sub.GroupID
			fmt.Fprintf(out, "\n## %s: %s\n", b.program.Name, group)
		}
		b.section(out, sub)
		b.sections(out, sub)
	}
}

func (b *binder) section(out *bytes.Buffer, c *cobra.Command) {
	fmt.Fprintf(out, "\n### %s\n\n%s\n", c.CommandPath(), markdown(c.Short))
	if len(c.Aliases) > 0 {
		fmt.Fprintf(out, "\nAlso: `%s`.\n", strings.Join(c.Aliases, "`, `"))
	}
	if name := b.defaults[c]; name != "" { // its arguments and flags stand there
		fmt.Fprintf(out, "\nWithout a command: `%s %s`.\n", c.CommandPath(), name)
		return
	}
	if c.HasSubCommands() {
		return
	}
	fmt.Fprintf(out, "\n    %s\n", c.CommandPath()+b.synopsis(c))
	if arguments := b.arguments[c]; len(arguments) > 0 {
		out.WriteString("\n| argument | |\n|---|---|\n")
		for _, a := range arguments {
			fmt.Fprintf(out, "| `%s` | %s |\n", a, markdown(a.help))
		}
	}
	b.flagTable(out, c.LocalNonPersistentFlags())
	for _, text := range []string{c.Long, c.Example} {
		if text != "" {
			fmt.Fprintf(out, "\n```text\n%s\n```\n", strings.TrimSpace(text))
		}
	}
}

func (b *binder) flagTable(out *bytes.Buffer, flags *pflag.FlagSet) {
	head := "\n| flag | |\n|---|---|\n"
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		switch x, ok := f.Value.(*value); {
		case !ok || x.isBool():
		case f.NoOptDefVal != "":
			name += "[=" + x.placeholder + "]"
		default:
			name += " " + x.placeholder
		}
		name = "`" + strings.ReplaceAll(name, "|", `\|`) + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		text := markdown(f.Usage)
		if f.DefValue != "" && f.DefValue != "false" {
			text += " Default: `" + strings.ReplaceAll(f.DefValue, "|", `\|`) + "`."
		}
		fmt.Fprintf(out, "%s| %s | %s |\n", head, name, text)
		head = ""
	})
}

// marked matches a condition that is an example, a quoted text, and a word that has characters of Markdown's markup,
// without what stands around it.
var marked = regexp.MustCompile("as in \\w+ (?:[<>=]+|IN) [^.]*?(?:, and|[.]|$)" +
	"|(?:^|\\s)'[^']*[a-z=*(][^']*'|[^\\s(\"',;]*[*_<>$`[][^\\s)\"',;]*")

// markdown makes Markdown of a help text: what marked matches becomes code.
func markdown(text string) string {
	text = marked.ReplaceAllStringFunc(text, func(word string) string {
		if condition, ok := strings.CutPrefix(word, "as in "); ok {
			condition, _, _ = strings.Cut(strings.TrimSuffix(condition, "."), ", and")
			return "as in `" + condition + "`" + word[len("as in ")+len(condition):]
		}
		if before, quoted, ok := strings.Cut(word, "'"); ok {
			return before + "`" + strings.TrimSuffix(quoted, "'") + "`"
		}
		trimmed := strings.TrimRight(word, ".:")
		return "`" + trimmed + "`" + word[len(trimmed):]
	})
	return strings.ReplaceAll(text, "|", `\|`)
}

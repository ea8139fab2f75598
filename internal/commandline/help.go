package commandline

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	widthElsewhere = 80 // where there is no terminal
	widest         = 120
)

// help prints what a command does, and its arguments, flags and commands.
func (b *binder) help(c *cobra.Command) error {
	width := widthElsewhere
	if b.program.Width > 0 {
		width = min(b.program.Width, widest)
	}
	var out bytes.Buffer
	out.WriteString("Usage: " + c.CommandPath() + b.synopsis(c) + "\n\n")
	writeWrapped(&out, width, 0, "", c.Short)
	if c.Short != "" && c.Long != "" {
		out.WriteByte('\n')
	}
	writeWrapped(&out, width, 0, "", c.Long)

	var arguments [][2]string
	for _, a := range b.arguments[c] {
		arguments = append(arguments, [2]string{a.String(), a.help})
	}
	writeList(&out, width, "Arguments", arguments)
	commands := map[string][][2]string{}
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			commands[sub.GroupID] = append(commands[sub.GroupID], [2]string{sub.Name(), sub.Short})
		}
	}
	for _, g := range c.Groups() {
		writeList(&out, width, g.Title, commands[g.ID])
	}
	others := "Commands"
	if len(c.Groups()) > 0 {
		others = "Others"
	}
	writeList(&out, width, others, commands[""])
	writeFlags(&out, width, "Flags", c.LocalNonPersistentFlags())
	general := pflag.NewFlagSet("", pflag.ContinueOnError)
	general.SortFlags = false
	general.AddFlagSet(c.PersistentFlags())
	general.AddFlagSet(c.InheritedFlags())
	heading := "Flags"
	if c.HasParent() || c.HasAvailableSubCommands() {
		heading = "Flags of all commands"
	}
	writeFlags(&out, width, heading, general)
	if c.Example != "" {
		out.WriteString("\nExample:\n  " + c.Example + "\n")
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&out, "\nRun \"%s <command> --help\" for more about a command.\n", c.CommandPath())
	}
	_, err := b.program.Out.Write(out.Bytes())
	return err
}

// synopsis returns what follows a command's name.
func (b *binder) synopsis(c *cobra.Command) string {
	arguments, found := b.arguments[c]
	s := " <command>"
	if found {
		s = ""
		if c.HasAvailableSubCommands() { // one of them is meant where none is named
			s = " [<command>]"
		}
		for _, a := range arguments {
			s += " " + a.String()
		}
	}
	return s + " [flags]"
}

// helpCommand returns the command that prints help of others.
func (b *binder) helpCommand(root *cobra.Command, helped *error) *cobra.Command {
	find := func(names []string) (*cobra.Command, []string) {
		c, rest, err := root.Find(names)
		if err != nil {
			return root, names
		}
		return c, rest
	}
	var names []string
	help := &cobra.Command{Use: "help", Short: "Print help of a command.", Args: cobra.ArbitraryArgs}
	help.RunE = func(_ *cobra.Command, names []string) error {
		c, rest := find(names)
		if len(rest) > 0 {
			return seeHelp(c, expectedCommand(c, rest))
		}
		*helped = b.help(c)
		return nil
	}
	help.ValidArgsFunction = func(_ *cobra.Command, names []string, _ string) ([]string, cobra.ShellCompDirective) {
		var out []string
		if c, rest := find(names); len(rest) == 0 {
			for _, sub := range c.Commands() {
				if sub.IsAvailableCommand() {
					out = append(out, sub.Name()+"\t"+sub.Short)
				}
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	b.arguments[help] = []*argument{{value{field: reflect.ValueOf(&names).Elem()}, "command",
		"Its name, or names, as in features rename. Default: help of all.", true}}
	return help
}

// writeList writes a heading and names with what they are; nothing if there are none.
func writeList(out *bytes.Buffer, width int, heading string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	out.WriteString("\n" + heading + ":\n")
	longest := 0
	for _, r := range rows {
		longest = max(longest, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		writeWrapped(out, width, longest+4, fmt.Sprintf("  %-*s  ", longest, r[0]), r[1])
	}
}

// writeWrapped writes text in lines of a width. The first begins with begin, the others with indent spaces.
func writeWrapped(out *bytes.Buffer, width, indent int, begin, text string) {
	if text == "" {
		return
	}
	out.WriteString(begin)
	used := 0
	for _, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case used == 0:
		case indent+used+1+n > width:
			out.WriteString("\n" + strings.Repeat(" ", indent))
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(word)
		used += n
	}
	out.WriteByte('\n')
}

func writeFlags(out *bytes.Buffer, width int, heading string, flags *pflag.FlagSet) {
	if text := flags.FlagUsagesWrapped(width); text != "" {
		out.WriteString("\n" + heading + ":\n" + text)
	}
}

package commandline

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeFlags tells shells how the values of c's flags are completed.
func (b *binder) completeFlags(c *cobra.Command, target any, arguments []*argument) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		x, ok := f.Value.(*value)
		if !ok || x.isBool() || x.complete == "" && x.enum == nil {
			return
		}
		err := c.RegisterFlagCompletionFunc(f.Name,
			func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
				_ = setArguments(arguments, args) // the others will come
				return b.complete(c, target, x, begun)
			})
		if err != nil {
			panic(err)
		}
	})
}

// complete returns what begun may become.
func (b *binder) complete(c *cobra.Command, target any, x *value, begun string) ([]string, cobra.ShellCompDirective) {
	names, directive := x.enum, cobra.ShellCompDirectiveNoFileComp
	switch {
	case x.enum != nil:
	case x.complete == "dirs":
		return nil, cobra.ShellCompDirectiveFilterDirs
	case x.complete == "" || b.program.Complete == nil:
		return nil, cobra.ShellCompDirectiveDefault
	default:
		names = b.program.Complete(c.Context(), target, x.complete)
	}
	if !x.isList() || !x.commas {
		return names, directive
	}
	before := begun[:strings.LastIndexByte(begun, ',')+1]
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = before + strings.ReplaceAll(name, ",", "\\,")
	}
	return all, directive | cobra.ShellCompDirectiveNoSpace
}

// startsCommand reports whether one of c's commands begins so.
func startsCommand(c *cobra.Command, begun string) bool {
	names, _ := commandsOf(c)
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, begun) })
}

// directories returns those here whose names begin so.
func directories(begun string) ([]string, cobra.ShellCompDirective) {
	all, _ := os.ReadDir(".") // what cannot be listed has none; no command has a slash
	var out []string
	for _, e := range all {
		if e.IsDir() && strings.HasPrefix(e.Name(), begun) && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, e.Name()+"/")
		}
	}
	if out == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// A fishScript mends cobra's script, which it gets in one Write: it takes a completion that begins with dashes, as that
// of --features=cou does, for an option of fish's string.
type fishScript struct{ io.Writer }

func (w fishScript) Write(script []byte) (int, error) {
	_, err := w.Writer.Write(bytes.ReplaceAll(script, []byte(`string split --max 1 \t $`),
		[]byte(`string split --max 1 -- \t $`)))
	return len(script), err
}

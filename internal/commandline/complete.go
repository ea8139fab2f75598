package commandline

import (
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

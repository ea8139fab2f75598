package commandline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsistore/dsistore/internal/suggest"
)

// A Program is what arguments are parsed for.
type Program struct {
	Name        string
	Description string // one sentence or more
	Note        string // the last lines of each command's help
	Version     string // "": there is no flag --version
	Out, Err    io.Writer
	Width       int               // of Out, for help; 0: no terminal
	Vars        map[string]string // what replaces ${NAME} in the tags

	// Complete returns what a shell may complete a flag or an argument to, by its tag complete. target is the command's
	// struct, filled with what stands before. nil: nothing.
	Complete func(ctx context.Context, target any, what string) []string
}

// A Command is what arguments asked for.
type Command struct {
	Path   string // its names, without the program's, as in "overlay add"; "": the program has no commands
	Target any    // a pointer to its struct, filled
	// Near is why its first argument may be a mistyped command, as in "dsi features dorp": the error of that. nil: it
	// is not like any.
	Near error
}

// An Error is one of the arguments. Its text ends with where help is.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Parse fills grammar, a pointer to the program's struct, with args, which exclude the program's name. It returns nil
// without an error when help, the version or a completion was asked for, and printed. What is wrong with the arguments
// is an Error. It panics if the grammar is wrong.
func (p *Program) Parse(ctx context.Context, grammar any, args []string) (*Command, error) {
	for _, arg := range args {
		if !utf8.ValidString(arg) { // names that are no text would all be shown, and stored, as one
			return nil, &Error{fmt.Errorf("argument %.100q is not UTF-8", arg)}
		}
	}
	b, root := p.bind(grammar)
	root.SetOut(p.Out)
	if len(args) > 1 && args[0] == "completion" && args[1] == "fish" {
		root.SetOut(fishScript{p.Out})
	}
	root.SetErr(p.Err)
	root.SetArgs(append([]string{}, args...)) // of nil, cobra would take the process's
	var helped error
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { helped = b.help(c) })
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return seeHelp(c, flagError(c, err)) })
	root.SetHelpCommand(b.helpCommand(root, &helped))
	if root.ContainsGroup(HelpGroup) {
		root.SetHelpCommandGroupID(HelpGroup)
		root.SetCompletionCommandGroupID(HelpGroup)
	}
	root.InitDefaultCompletionCmd(args...)
	if c, _, _ := root.Find([]string{"completion"}); c != root {
		c.Short, c.Long, c.Args = "Print what makes a shell complete commands and names.", "", cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error { return seeHelp(c, expectedCommand(c, args)) }
	}
	if err := root.ExecuteContext(ctx); err != nil {
		return nil, err
	}
	if b.found != nil && b.wrong != nil {
		return nil, b.wrong
	}
	return b.found, helped
}

// HelpGroup is the heading of help and completion, where it is that of another command.
const HelpGroup = "Help"

// bind makes the commands of a grammar.
func (p *Program) bind(grammar any) (*binder, *cobra.Command) {
	cobra.EnableCommandSorting = false
	b := &binder{program: p, arguments: map[*cobra.Command][]*argument{}, defaults: map[*cobra.Command]string{}}
	root := &cobra.Command{Use: p.Name, Long: p.Description, Version: p.Version, Args: cobra.ArbitraryArgs,
		SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().BoolP("help", "h", false, "Print help.")
	b.bind(root, reflect.ValueOf(grammar).Elem(), root.PersistentFlags(), "")
	root.InitDefaultVersionFlag()
	if f := root.Flags().Lookup("version"); f != nil {
		f.Usage, f.Shorthand = "Print the version.", ""
	}
	return b, root
}

// binder makes commands of structs.
type binder struct {
	program   *Program
	arguments map[*cobra.Command][]*argument
	defaults  map[*cobra.Command]string // the command that is meant where none is named
	found     *Command
	wrong     error // of the environment
}

// An argument is a field that an argument without a flag is for.
type argument struct {
	value
	name, help string
	optional   bool
}

func (a *argument) String() string {
	s := "<" + a.name + ">"
	if a.isList() {
		s += " ..."
	}
	if a.optional {
		s = "[" + s + "]"
	}
	return s
}

// bind makes c the command of the struct s, whose flags go to flags. path has the command's names.
func (b *binder) bind(c *cobra.Command, s reflect.Value, flags *pflag.FlagSet, path string) {
	c.Flags().SortFlags, flags.SortFlags = false, false
	var arguments []*argument
	var required []string
	var commands bool
	for _, f := range reflect.VisibleFields(s.Type()) {
		if f.Anonymous || !f.IsExported() || f.Tag.Get("commandline") == "-" {
			continue
		}
		tag := func(name string) string { return b.expand(f.Tag.Get(name)) }
		has := func(name string) bool { _, ok := f.Tag.Lookup(name); return ok }
		x := value{field: s.FieldByIndex(f.Index), commas: tag("sep") != "none", enum: splitCommas(tag("enum")),
			complete: tag("complete")}
		if !has("cmd") && !supported(f.Type, true) {
			panic(fmt.Sprintf("commandline: %s of %v: no flag or argument can be a %v", f.Name, s.Type(), f.Type))
		}
		switch {
		case has("cmd"):
			commands = true
			sub := &cobra.Command{Use: nameOf(f), Short: tag("help"), Aliases: splitCommas(tag("aliases")),
				Args: cobra.ArbitraryArgs, Example: tag("example")}
			if has("destructive") {
				sub.Annotations = map[string]string{destructive: "yes"}
			}
			if sub.GroupID = tag("group"); sub.GroupID != "" && !c.ContainsGroup(sub.GroupID) {
				c.AddGroup(&cobra.Group{ID: sub.GroupID, Title: sub.GroupID})
			}
			c.AddCommand(sub)
			subPath := strings.TrimSpace(path + " " + sub.Use)
			b.bind(sub, x.field, sub.Flags(), subPath)
			if tag("default") == "withargs" {
				b.bind(c, x.field, c.Flags(), subPath)
				c.Example = cmp.Or(c.Example, sub.Example)
				b.defaults[c] = sub.Use
			}
		case has("arg"):
			x.commas = false // a file's name may have some
			arguments = append(arguments, &argument{x, nameOf(f), tag("help"), has("optional")})
		default:
			b.addFlag(flags, &x, f, tag)
			if has("required") {
				required = append(required, nameOf(f))
			}
		}
	}
	switch {
	case !commands:
		b.runs(c, s, path, arguments, required)
	case c.RunE == nil: // no command is meant where none is named
		c.RunE = func(c *cobra.Command, args []string) error { return seeHelp(c, expectedCommand(c, args)) }
	}
}

// runs makes c the command that has been found when it runs.
func (b *binder) runs(c *cobra.Command, s reflect.Value, path string, arguments []*argument, required []string) {
	target := s.Addr().Interface()
	if h, ok := target.(interface{ Help() string }); ok {
		c.Long = h.Help()
	}
	b.arguments[c] = arguments
	c.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		_ = setArguments(arguments, args) // the others will come
		a := arguments[min(len(args), len(arguments)-1)]
		if len(args) >= len(arguments) && !a.isList() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, directive := b.complete(c, target, &a.value, begun)
		if len(args) == 0 && directive == cobra.ShellCompDirectiveFilterDirs && startsCommand(c, begun) {
			return directories(begun) // beside the commands, which the directive would hide
		}
		return names, directive
	}
	b.completeFlags(c, target, arguments)
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, name := range required {
			if f := c.Flags().Lookup(name); !f.Changed && !f.Value.(*value).given {
				return seeHelp(c, fmt.Errorf("--%s %s is missing", name, f.Value.Type()))
			}
		}
		var near error
		if len(args) > 0 {
			near = nearCommand(c, args[0])
		}
		if err := setArguments(arguments, args); err != nil {
			if near != nil {
				err = fmt.Errorf("%w; %w", err, near)
			}
			return seeHelp(c, err)
		}
		b.found = &Command{Path: path, Target: target, Near: near}
		return nil
	}
}

// setArguments sets the fields that arguments are for.
func setArguments(arguments []*argument, args []string) error {
	for i, a := range arguments {
		switch {
		case len(args) == 0 && !a.optional:
			var missing []string
			for _, a := range arguments[i:] {
				if !a.optional {
					missing = append(missing, a.String())
				}
			}
			return fmt.Errorf("%s is missing", strings.Join(missing, " "))
		case len(args) == 0:
			return nil
		}
		n := 1
		if a.isList() {
			n = len(args)
		}
		for _, s := range args[:n] {
			if err := a.Set(s); err != nil {
				return fmt.Errorf("%v: %w", a, err)
			}
		}
		args = args[n:]
	}
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// addFlag adds the flag of a field.
func (b *binder) addFlag(flags *pflag.FlagSet, x *value, f reflect.StructField, tag func(string) string) {
	def := tag("default")
	if def != "" {
		if err := x.Set(def); err != nil {
			panic(fmt.Sprintf("commandline: --%s: default %v", nameOf(f), err))
		}
	}
	x.isSet = false
	if name := tag("env"); name != "" && os.Getenv(name) != "" {
		def, x.given = os.Getenv(name), true
		if err := x.Set(def); err != nil && b.wrong == nil {
			b.wrong = &Error{fmt.Errorf("%s in the environment: %w", name, err)}
		}
		x.isSet = false
	}
	if x.placeholder = tag("placeholder"); x.placeholder == "" {
		x.placeholder = strings.ToUpper(nameOf(f)[strings.LastIndexByte(nameOf(f), '-')+1:])
	}
	_, hidden := f.Tag.Lookup("hidden")
	bare := tag("bare")
	if x.isBool() {
		bare = "true"
	}
	flags.AddFlag(&pflag.Flag{Name: nameOf(f), Shorthand: tag("short"), Usage: tag("help"), Value: x, DefValue: def,
		NoOptDefVal: bare, Hidden: hidden})
}

// expand replaces ${NAME}, for each variable of the program.
func (b *binder) expand(s string) string {
	for name, v := range b.program.Vars {
		s = strings.ReplaceAll(s, "${"+name+"}", v)
	}
	if strings.Contains(s, "${") {
		panic(fmt.Sprintf("commandline: %q has a variable that the program has not", s))
	}
	return s
}

// nameOf returns a field's name on the command line.
func nameOf(f reflect.StructField) string {
	if name := f.Tag.Get("name"); name != "" {
		return name
	}
	var b strings.Builder
	letters := []rune(f.Name)
	for i, r := range letters {
		if i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// destructive is the annotation of commands that take something away.
const destructive = "destructive"

// expectedCommand is the error of a command that only has commands.
func expectedCommand(c *cobra.Command, args []string) error {
	names, harmless := commandsOf(c)
	if len(args) > 0 {
		hint := suggest.Hint(args[0], harmless)
		if hint == "" && c.HasParent() && len(names) > 0 {
			hint = "; there are " + strings.Join(names, ", ")
		}
		return fmt.Errorf("there is no command %q%s", args[0], hint)
	}
	return fmt.Errorf("expected a command: %s", strings.Join(names, ", "))
}

// nearCommand is the error of a first argument that is like the name of one of c's commands; nil: it is not.
func nearCommand(c *cobra.Command, arg string) error {
	names, _ := commandsOf(c)
	if strings.ContainsAny(arg, "/.") || len(suggest.Names(arg, names, 1)) == 0 {
		return nil
	}
	return expectedCommand(c, []string{arg})
}

// commandsOf returns the names of c's commands, and those that may be suggested, with other names that they have: none
// that takes something away, since who runs what is suggested may not have read it.
func commandsOf(c *cobra.Command) (names, harmless []string) {
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "completion" {
			names = append(names, sub.Name())
			if sub.Annotations[destructive] == "" {
				harmless = append(append(harmless, sub.Name()), sub.Aliases...)
			}
		}
	}
	return names, harmless
}

// flagError says what pflag found wrong.
func flagError(c *cobra.Command, err error) error {
	var missing *pflag.NotExistError
	var valueless *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &missing):
		name := missing.GetSpecifiedName()
		if letters := missing.GetSpecifiedShortnames(); letters != "" {
			if c.Flags().Lookup(letters) != nil { // one dash is missing
				return fmt.Errorf("unknown flag -%s%s", letters, suggest.Question([]string{"--" + letters}))
			}
			return fmt.Errorf("unknown flag -%s", name)
		}
		var all, longer []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			all = append(all, f.Name)
			if strings.HasPrefix(f.Name, name) {
				longer = append(longer, f.Name)
			}
		})
		if len(longer) != 1 {
			longer = suggest.Names(name, all, 3)
		}
		for i := range longer {
			longer[i] = "--" + longer[i]
		}
		return fmt.Errorf("unknown flag --%s%s", name, suggest.Question(longer))
	case errors.As(err, &valueless):
		f := valueless.GetFlag()
		return fmt.Errorf("--%s: %s is missing", f.Name, f.Value.Type())
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return err
}

// seeHelp makes err an Error that says where help is.
func seeHelp(c *cobra.Command, err error) error {
	return &Error{fmt.Errorf("%w (see %s --help)", err, c.CommandPath())}
}

// Package commandline parses a program's arguments into structs, whose fields are its flags and arguments: the tags of
// the fields become commands of cobra, which also has help, and completion for bash, zsh and fish.
//
//	struct of flags and commands ── bind ──> cobra.Command ── Parse ─┬─> the command that was named, its struct filled
//	                                                                 └─> help, version or completion: printed
//
// It reads fields by reflection and calls no method by reflection: one program that does makes the linker keep every
// exported method of every type, which was 13 of the 64 MB of dsi.
//
// A field of the program's struct is a flag. Its name is the field's in lower case, with dashes. Tags:
//
//	name:"x"          another name
//	short:"n"         one letter that stands for it
//	help:"..."        what it does: a sentence
//	placeholder:"X"   what stands for the value in help
//	default:"x"       the value without the flag
//	bare:"x"          the value of the flag without a value, which must follow an equals sign then
//	enum:"a,b"        the only values
//	env:"X"           the environment variable that replaces the default
//	required:""       it must be given
//	sep:"none"        values of a list have no commas between them: the flag is repeated
//	hidden:""         help does not show it
//	complete:"x"      what a shell completes it to: dirs, or what Program.Complete knows; without: files
//	arg:""            an argument in place of a flag; a list takes all that follow
//	optional:""       an argument that may be missing
//	cmd:""            a struct with the flags and arguments of a command
//	group:"X"         the heading of a command in help; help and completion come under Help, where there is one
//	example:"..."     a line that runs the command: it stands at the end of its help
//	aliases:"a,b"     other names of a command
//	default:"withargs"  the command that is meant where none is named
//	commandline:"-"   nothing of the above
//
// The fields of embedded structs are as those of the struct itself. What a command's method Help() string returns, if
// it has one, stands below what it does.
//
// Program.Man writes the same as man pages.
package commandline

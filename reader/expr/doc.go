// Package expr parses the SQL expressions that users write to select rows, and evaluates them over partition
// values, over statistics and over the columns of stripes.
//
//	"ds >= '2026-11-01' AND clicks / shows > 0.1"
//	      |  tokens (lexer.go)
//	      v
//	   Parse (parser.go)  ──>  Expr (expr.go), whose String parses back to itself
//	                             |  names resolved and typed (bind.go)
//	                             v
//	                          nodes ──>  a Verdict of statistics and partition values, a bitmap of columns
//	                           |- leafNode    (leaf.go)    a feature against constants, which statistics may decide
//	                           |- nullNode    (null.go)
//	                           |- sampleNode  (sample.go)
//	                           |- scalarNode  (scalar.go)  any other values: features, partition keys, results
//	                           '- chainNode, notNode (filter.go)
//
// There is one evaluator. A partition key is a column with one value, so a predicate over partitions (partition.go) is
// a Filter without features. An expression that is not a condition, such as clicks / shows, is a Value (value.go): a
// number for each row.
//
// A condition is a type with the methods of Expr, in a file of its own, and an entry of conditions or functions
// in parser.go.
//
// The grammar, loosest first; keywords in any case:
//
//	or        = and { OR and }
//	and       = not { AND not }
//	not       = NOT not | predicate
//	predicate = operand ( = | == | != | <> | < | <= | > | >= ) operand
//	          | operand [ NOT ] IN ( literal { , literal } )
//	          | operand [ NOT ] BETWEEN operand AND operand
//	          | operand [ NOT ] LIKE 'pattern'           % any characters, _ one, \ takes the next as it is
//	          | operand IS [ NOT ] NULL
//	          | contains ( name , literal )              the list holds the value
//	          | regexp_matches ( operand , 'pattern' )   a part of the string matches, in RE2's syntax
//	          | sample ( number , key = name [ , seed = integer ] )    that fraction of all keys, by hash
//	          | name | TRUE | FALSE                      a value that is itself true or false
//	          | ( or )
//	operand   = product { ( + | - ) product }            numbers, computed as Arithmetic says
//	product   = factor { ( * | / ) factor }
//	factor    = literal | name | ( - | + ) factor | ( operand )
//	          | len ( name )                             how many elements the list holds
//	          | any ( name ) | all ( name )              the predicate holds for one element, or for each
//	literal   = 'string' | number | TRUE | FALSE
//	name      = word { . word } | "any text" | `any text`
//
// A quote is doubled inside its own kind of quotes. There are no comments: -- is an error. AND, OR and NOT follow SQL's
// three-valued logic: a comparison with null is unknown, and a row is selected only if the expression is true.
//
// Untrusted expressions are safe: they cannot call anything, and their text, depth and number of parts are limited
// (MaxBytes, MaxDepth, MaxNodes, MaxOperators). Parsed expressions, Filters and the predicates of ParsePartition are
// immutable and safe for concurrent use.
package expr

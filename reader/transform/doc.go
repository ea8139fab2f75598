// Package transform changes the values of a feature while it is read: first(20)|mod(1000003).
//
//	text ──ParseChain──> Chain ──Bound.Compile──> Program ──State.Run──> column
//	                            (type of the feature)
//
// A Program runs on the slots of a column: each distinct value is transformed once, and the inverse indices are left as
// they are. A Program is immutable; a State is scratch memory of one goroutine.
package transform

// Package transform changes the values of a feature while it is read, for example by first(20)|mod(1000003).
//
//	text ──ParseChain──> Chain ──Bound.Compile──> Program ──State.Run──> column
//	                            (type of the feature)
//
// A Program runs on the slots of a column: each distinct value is transformed once, and the inverse indices do not
// change. A Program is immutable. A State is scratch memory for one goroutine.
package transform

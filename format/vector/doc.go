// Package vector holds rows of one feature in memory, in the form that all layers use.
//
//	           rows 0..Rows-1
//	              |
//	  Inverse ────┤  (nil: row i is slot i)
//	              v
//	           slots 0..Slots-1 ── Present: null or not
//	              |
//	dense         |  Values[s]
//	embedding     |  Values[s*Dim : (s+1)*Dim]
//	list, bytes   |  Values[Offsets[s] : Offsets[s+1]]            (Lengths == nil)
//	with Lengths  |  Values[Offsets[s] : Offsets[s]+Lengths[s]]   (slots may overlap)
//	weighted      |  the same range of Scores
//
// A slot is one distinct value, stored once. Many rows may share it. A null slot has its Present bit clear and holds
// zeros (dense, embedding) or an empty range (lists). Null and an empty list are different.
//
// Columns are plain slices. Nothing here is safe for concurrent use while one side writes.
package vector

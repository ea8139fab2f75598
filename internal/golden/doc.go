// Package golden keeps a store of every release, and tests that it is read for ever.
//
//	testdata/0.1.0/store/        as dsi 0.1.0 wrote it: all kinds of features and profiles, duplicates, histories,
//	                             deleted and erased rows, overlays, branches, sample lists, a repair
//	testdata/0.1.0/golden.json   how it is read: a View each
//	testdata/0.1.0/*.jsonl.gz    the rows of each View, as the model has them: no reader of ours wrote them
//
// TestGolden reads each View of each store by the reader and by dsi, compares every value, verifies the store, and
// writes on in a copy. Once its version is released, a file of testdata is never changed: golden.json has the SHA-256
// of all. Until then it says "candidate", and make golden makes it anew. Bytes of single files, for every codec, are in
// format/testdata, those of the store's own objects in storage/testdata: this package is about a store as users have
// it.
package golden

// Package versus measures dsistore against the Parquet that it was made from, in one process, on the same tensors.
//
//	Setup:  workload ──Generate──> Parquet ──ingest.Run──> store        kept in a directory, made once
//	Engines:  reader of the store │ parquetscan of the Parquet
//	Digest: every engine's rows, hashed; a figure counts only when all are equal
//	Rounds: A B C, C B A, A B C, ...; medians
//
// A store that was clustered by session gives the source's rows in another order, so equality is that of the multiset
// of whole rows: each row's values of all features are hashed together, and the hashes are added.
package versus

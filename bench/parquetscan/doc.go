// Package parquetscan reads columns of Parquet files into the tensors that package reader makes, with arrow-go, as fast
// as we know how: it is the baseline that dsistore is measured against, so it must not be a straw man.
//
//	column chunks (one for each feature and row group, or two where there are scores)
//	   │ ReadBatch: levels, and values that are not null, straight into the tensors
//	   v
//	dense [B, D]   values are scattered to rows        sparse  lengths from levels; values where they were decoded
//
// Values are decoded where the tensor wants them; what a read brought beyond the batch's last row is carried to the
// next batch. Nothing is allocated for a row or a list. With more than one thread, columns are decoded side by side,
// each to its own memory, and then copied to the tensor.
package parquetscan

// Package hive reads what Hive and Spark say of a table outside its files: the types of columns in their spelling
// (ParseType), the statement CREATE TABLE (ParseTable), and the names of directories that are partitions
// (DirectoryPartition).
package hive

// Package object stores blobs: immutable byte strings under slash-separated names, written once and whole.
//
//	          Store (the contract; Conformance in objecttest holds every store to it)
//	            |
//	  +---------+----------+------------------------+
//	  |         |          |                        |
//	Local     Memory    packages s3, gcs,      Counted, Fault, Delayed:
//	a root              azure: a bucket, or    a Store around a Store
//	directory           a container
//
// An object exists, whole and durable, or it does not exist: PutIfAbsent and Writer.Commit are the two ways to make
// one, and both refuse a name that is taken. Objects do not change, except that Truncate removes the bytes of one
// and leaves its name taken. Commits need nothing else.
//
// Local keeps an object in the file of the same name under its root, and writes it like this, so that power loss at any
// point leaves it whole or absent:
//
//	_tmp/<random>   create, write, fsync
//	<name>          link _tmp/<random> (fails if the name is taken), fsync the directory and new parents
//	_tmp/<random>   unlink
//
// Truncate renames an empty _tmp/<random> over the file, and syncs the directory.
//
// A symbolic link to a file is read as that file. One to a directory is not followed by listings, which name it in an
// error: they would leave the store, or go round in circles.
//
// Names whose first component begins with "_" are the store's own and no object's: _tmp here.
//
// All methods of all stores are safe for concurrent use.
package object

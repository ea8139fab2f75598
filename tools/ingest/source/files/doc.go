// Package files is where sources lie: on the local file system, or in buckets of object stores.
//
//	path              s3://bucket/key
//	  |                     |
//	local files       bucket -- object.Bucket     one listing of all below a prefix, made a tree of folders
//	        \          /
//	          System         Stat, ReadDir, Open (at offsets), Read (from the beginning)
//
// A path with "://" is the URI of an object, or of the objects below it, as a folder. What follows the bucket is the
// key as it is: no escapes are read. Any other path is a local one, and is read as the operating system does.
//
// An object is read as it was when it was listed. One that is replaced meanwhile is an error, and so is one that the
// service does not give: they match ErrUnread, since they say nothing about the file.
//
// Requests are of 8 MiB: Read has one under way beside the one that is consumed; Fetch takes the parts of an Open file
// that will be read, those with small gaps together. What the memory of Fetch does not hold lies in a temporary file.
package files

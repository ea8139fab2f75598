// Package azure keeps objects as block blobs in a container of Azure Blob Storage.
//
//	PutIfAbsent   Put Blob, If-None-Match: *
//	Create        up to a part: the same; else Put Block ..., Put Block List, If-None-Match: *
//	ReadAt        Get Blob with a range; what a body leaves out is asked for again
//	Stat          Get Blob Properties
//	List          List Blobs, startFrom
//	Delete        Delete Blob; DeleteAll: Blob Batch, 256 names each
//	RemoveVersions List Blobs (versions, snapshots, deleted), Delete Blob
//	Temporary     List Blobs (uncommittedblobs), Get Block List
//	Truncate      Put Blob, If-Match: its version
//	Bucket        List Blobs, Get Blob, If-Match: the version that was described
//
// A request may take effect although its answer is lost. It is then sent again, and the answer is that the blob exists,
// although this call made it. So each creation puts a random id into the blob's metadata, and a creation that is
// refused compares the id of the blob with its own.
//
//	        201                                made
//	PUT --> 408, 429, 5xx, lost           -->  PUT again
//	        409 BlobAlreadyExists, 412,
//	        400 InvalidBlockList          -->  HEAD: our id -> made, another -> ErrExists
//
// Blocks that are not committed belong to a name, and not to an upload. Those of an upload begin with the service's
// time and a random id, so that uploads that race for a name do not touch each other's; the first that is committed
// drops the others'.
//
//	+---------------------------+--------------------+--------------------+
//	| Unix seconds, in hex (8)  | id of upload (26)  | number (5 digits)  |   in base64
//	+---------------------------+--------------------+--------------------+
//
// Names of objects follow the store's prefix in the container. Times have seconds, and are the service's. The time of
// an object is that of its commit. A store in an account with a hierarchical namespace is refused: it lists names in
// another order.
package azure

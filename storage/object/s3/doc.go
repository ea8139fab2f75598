// Package s3 keeps objects in a bucket of S3, or of a server that speaks its protocol and keeps its conditions.
//
//	PutIfAbsent   PutObject, If-None-Match: *
//	Create        below a part: the same; else CreateMultipartUpload, UploadPart ..., CompleteMultipartUpload,
//	              If-None-Match: *
//	ReadAt        GetObject with a range; what a body leaves out is asked for again
//	Stat          HeadObject
//	List          ListObjectsV2
//	Delete        DeleteObject; DeleteAll: DeleteObjects, 1,000 names each
//	RemoveVersions ListObjectVersions, DeleteObjects
//	Truncate      PutObject, If-Match: its version
//
// A request may take effect although its answer is lost. The SDK then sends it again, and the answer is 412, although
// this call made the object. So each creation puts a random id into the object's metadata, and a creation that is
// refused compares the id of the object with its own. 409 means that another creation of the name was under way,
// neither success nor "exists": the request is sent again.
//
//	        200                  made
//	PUT --> 409, 5xx, lost  -->  PUT again
//	        412             -->  HEAD: our id -> made, another -> ErrExists
//
// Names of objects follow the store's prefix in the bucket. Times have seconds, and are the service's. The time of an
// object that was made by a multipart upload is that of its beginning.
package s3

// Package gcs keeps objects in a bucket of Google Cloud Storage, by its JSON API.
//
//	PutIfAbsent    POST uploadType=multipart, ifGenerationMatch=0
//	Create         below a chunk: the same; else POST uploadType=resumable, ifGenerationMatch=0, and PUTs of chunks
//	ReadAt         GET alt=media with a range; the rest of a body that broke off is asked for again
//	Stat           GET of the metadata
//	List           GET o?prefix&startOffset
//	Delete         DELETE; DeleteAll: batches of 100 DELETEs
//	RemoveVersions GET o?versions=true, DELETEs with generation
//	Truncate       POST uploadType=multipart, ifGenerationMatch= its generation
//
// A request may take effect although its answer is lost. It is then sent again and answered with 412, although this
// call made the object. So each creation puts a random id into the object's metadata, and a creation that is refused
// compares the id of the object with its own.
//
// The chunks of a resumable upload are sent one after the other; while one is on its way, the next is filled. After an
// error the service is asked how much it has:
//
//	PUT bytes 0-8388607/*              --> 308 Range: bytes=0-8388607: the next chunk
//	                                   --> 5xx, lost --> PUT bytes */* --> 308 Range: bytes=0-N: on from there
//	PUT bytes 8388608-8388611/8388612  --> 200: made
//	                                   --> 412, 404  --> GET: our id -> made, another -> ErrExists
//
// The URL of an upload is as good as a credential for it: no error shows it. Uploads that are aborted are cancelled.
// The service forgets the others after a week; it has no list of them, and there is nothing for gc to do.
//
// Names of objects follow the store's prefix in the bucket. Times and generations are the service's; a generation is an
// object's version.
package gcs

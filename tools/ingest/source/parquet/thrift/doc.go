// Package thrift reads Thrift's compact protocol from untrusted bytes, as far as Parquet needs it.
package thrift

// Package simdtest helps to test kernels: it places slices where a load or store beside them ends the process.
package simdtest

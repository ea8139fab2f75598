// Package names makes and parses the names of a store's objects, and checks the names that people give.
//
//	dsistore                                      the marker
//	tables/<table>/...                            TableDir and what is below it
//	<2 hex>/<32 hex>/index.sst, pack-000000, ...  ID.Dir and what is below it
//
// # Invariants
//
//   - An ID ends in the TableID of its table, so that an object's name says which table it belongs to.
//   - A parser accepts no name that this package does not make.
//   - Names of tables, overlays, lists and branches are data. Only a table's becomes part of an object's name, escaped.
//   - Names of leases are made in package lease, those of usage records in package usage.
package names

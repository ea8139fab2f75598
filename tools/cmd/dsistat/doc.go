// Command dsistat says what the tables of a store hold, who reads them, what that costs, and what was saved. Package
// tools/dsistat holds all of it.
package main

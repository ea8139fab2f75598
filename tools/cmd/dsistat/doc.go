// Command dsistat says of a store's tables what they hold, who reads it, what that costs, and what was saved. Package
// dsistat in tools is all of it.
package main

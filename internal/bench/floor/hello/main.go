// Command hello is the smallest useful Go program: the floor of a binary's
// size.
package main

import "fmt"

func main() { fmt.Println("hello") }

// Command peer is what runs in the other containers of the tests' tasks: the
// task metadata endpoint, and a program that reads files.
//
// usage: peer serve ADDRESS TEXT | peer read FILE...
//
// TASK in the text becomes the first element of the path that is asked for.
package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	switch os.Args[1] {
	case "serve":
		err := http.ListenAndServe(os.Args[2], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			task, _, _ := strings.Cut(r.URL.Path[1:], "/")
			fmt.Fprint(w, strings.ReplaceAll(os.Args[3], "TASK", task))
		}))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case "read":
		for _, name := range os.Args[2:] {
			data, err := os.ReadFile(name)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			fmt.Println("read", name, len(data) > 0)
		}
	}
}

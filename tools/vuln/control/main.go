// Command control calls a function with a known vulnerability, which make vuln must find.
package main

import "golang.org/x/text/language"

func main() {
	_, _, _ = language.ParseAcceptLanguage("en")
}

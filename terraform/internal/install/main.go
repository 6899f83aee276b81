// Command install prepares a directory for terraform by hand: a mirror with this program as
// every provider, and the configuration that names it. It prints the environment that makes terraform use it.
//
//	go build -o /tmp/offline ./internal/install && eval "$(/tmp/offline /tmp/mirror)"
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/meshtask/consul-ecs/terraform/internal/stub"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func run() error {
	if served, err := stub.ServeAsProvider(); served || err != nil {
		return err
	}
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: install DIRECTORY")
	}
	dir, err := filepath.Abs(os.Args[1])
	if err != nil {
		return err
	}
	config, err := stub.Install(dir, stub.AWS6)
	if err != nil {
		return err
	}
	fmt.Printf("export TF_CLI_CONFIG_FILE=%s CHECKPOINT_DISABLE=1\n", config)
	return nil
}

// Command link contains Consul's API client and the logger, used as we use
// them: the floor of the size of a program that registers a service. It is
// built and never run.
package main

import (
	"net/http"
	"os"

	"github.com/hashicorp/consul/api"
	"github.com/hashicorp/go-hclog"
)

func main() {
	log := hclog.New(&hclog.LoggerOptions{Output: os.Stderr})
	config := api.DefaultConfig()
	// Not api.NewClient, which consulutil alone may call; the linker keeps
	// what these methods need anyway.
	transport, err := api.NewHttpClient(http.DefaultTransport.(*http.Transport), config.TLSConfig)
	client := new(api.Client)
	_, loginErr := client.ACL().Logout(nil)
	log.Info("linked", "client", transport, "error", err, "login", loginErr,
		"register", client.Agent().ServiceRegister(&api.AgentServiceRegistration{}))
}

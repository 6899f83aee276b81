package config

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// TestFieldsOf010 holds what hashicorp/consul-ecs 0.10 accepts and refuses in each field.
func TestFieldsOf010(t *testing.T) {
	t.Parallel()
	for path, values := range map[string][2]string{ // accepted and refused, as JSON lists
		"healthSyncContainers": {`[null,[],["a"],["a","b"]]`,
			`[["a","a"],"a",[1]]`},
		"consulLogin": {`[null,{}]`, `[[],{"x":1}]`},
		"controller":  {`[null,{},{"partitionsEnabled":true,"partition":"p"}]`, `[[],{"x":1}]`},
		"logLevel": {`[null,"TRACE","DEBUG","INFO","WARN","ERROR"]`,
			`["info","",5,"trace"]`},
		"consulLogin.enabled":             {`[null,true,false]`, `["true",1]`},
		"consulLogin.method":              {`[null,"","x"]`, `[1]`},
		"consulLogin.datacenter":          {`[null,"","x"]`, `[1]`},
		"consulLogin.region":              {`[null,"","x"]`, `[1]`},
		"consulLogin.stsEndpoint":         {`[null,"","https://sts.us-east-1.amazonaws.com"]`, `[1]`},
		"consulLogin.serverIdHeaderValue": {`[null,"","x"]`, `[1]`},
		"consulLogin.includeEntity":       {`[null,true,false]`, `[]`},
		"consulLogin.meta":                {`[null,{},{"a":"b"},{"consul.hashicorp.com/task-id":"x"}]`, `[{"a":1},[]]`},
		"controller.iamRolePath":          {`[null,"","/consul-ecs/","/a/b/","/consul-ecs","consul-ecs/","/"]`, `[1]`},
		"controller.partitionsEnabled":    {`[null,true,false]`, `[]`},
		"controller.partition":            {`[null,""]`, `[]`},
		"consulServers.hosts": {`["","1.2.3.4","exec=discover -q addrs ` +
			`x","::1","a.b"]`, `[]`},
		"consulServers.skipServerWatch":        {`[null,true]`, `[]`},
		"consulServers.defaults":               {`[null,{},{"x":1}]`, `[[],1]`},
		"consulServers.defaults.tls":           {`[null,true,false]`, `["true"]`},
		"consulServers.defaults.caCertFile":    {`[null,"","x"]`, `[1]`},
		"consulServers.grpc.caCertFile":        {`[null,"","x"]`, `[1]`},
		"consulServers.http.caCertFile":        {`[null,"","x"]`, `[1]`},
		"consulServers.defaults.tlsServerName": {`[null,"","x"]`, `[1]`},
		"consulServers.grpc.tlsServerName":     {`[null,"","x"]`, `[1]`},
		"consulServers.http.tlsServerName":     {`[null,"","x"]`, `[1]`},
		"consulServers.grpc":                   {`[null,{},{"x":1}]`, `[[],1]`},
		"consulServers.grpc.port":              {`[null,0,8502]`, `["8502",1.5]`},
		"consulServers.grpc.tls":               {`[null,true,false]`, `["x"]`},
		"consulServers.http":                   {`[null,{},{"x":1}]`, `[[],1]`},
		"consulServers.http.port":              {`[null,0,8502]`, `["8502",1.5]`},
		"consulServers.http.tls":               {`[null,true,false]`, `["x"]`},
		"consulServers.http.https":             {`[null,true,false]`, `[]`},
		"service.name": {`["","web","a-b_c","0a","a",null]`,
			`["Web","-a","a-","a.b","_a"]`},
		"service.tags":                                                 {`[null,[],["a","b"]]`, `[["a","a"],"a"]`},
		"service.meta":                                                 {`[null,{},{"a":"b"}]`, `[{"a":1}]`},
		"service.enableTagOverride":                                    {`[null,true]`, `[]`},
		"service.weights":                                              {`[null,{"passing":1,"warning":1},{"passing":3,"warning":0}]`, `[{},{"passing":1},{"passing":1,"warning":1,"x":1}]`},
		"service.namespace":                                            {`[null,"","default","ns1"]`, `[1]`},
		"service.partition":                                            {`[null,"","default","ns1"]`, `[1]`},
		"service.networkResilienceConfig":                              {`[null,{}]`, `[{"x":1},[]]`},
		"service.networkResilienceConfig.enabled":                      {`[true,false]`, `[null,"x"]`},
		"service.networkResilienceConfig.outlierDetection":             {`[null,{}]`, `[{"x":1},[]]`},
		"service.networkResilienceConfig.outlierDetection.interval":    {`[1,100,0]`, `[-1,"x",1.5]`},
		"service.networkResilienceConfig.outlierDetection.maxFailures": {`[1,100]`, `[-1,"x",1.5,0]`},
		"service.networkResilienceConfig.outlierDetection.enforcingConsecutive5xx": {`[1,100,0]`,
			`[-1,"x",1.5,101]`},
		"service.networkResilienceConfig.outlierDetection.consecutive5xx": {`[1,100,0]`,
			`[-1,"x",1.5]`},
		"service.networkResilienceConfig.outlierDetection.consecutiveGatewayFailure": {`[1,100,0]`,
			`[-1,"x",1.5]`},
		"service.networkResilienceConfig.outlierDetection.enforcingConsecutiveGatewayFailure": {`[1,100,0]`,
			`[-1,"x",1.5,101]`},
		"service.networkResilienceConfig.outlierDetection.maxEjectionPercent": {`[1,100,0]`, `[-1,"x",1.5,101]`},
		"proxy":                     {`[null,{},{"x":1}]`, `[[],1]`},
		"proxy.config":              {`[null,{},{"a":{"b":[1]}}]`, `[[],"x"]`},
		"proxy.publicListenerPort":  {`[null,20000,0]`, `["1"]`},
		"proxy.healthCheckPort":     {`[null,0,22000,8080]`, `["22000",1.5]`},
		"proxy.localServiceAddress": {`[null,"","127.0.0.1","10.0.0.1","::1"]`, `[1]`},
		"proxy.upstreams":           {`[null,[],[{"destinationName":"a","localBindPort":1234,"destinationType":null}],[{"destinationName":"a","localBindPort":1234,"destinationType":"service"}],[{"destinationName":"a","localBindPort":1234,"destinationType":"prepared_query"}],[{"destinationName":"a","localBindPort":1234,"destinationNamespace":null}],[{"destinationName":"a","localBindPort":1234,"destinationNamespace":""}],[{"destinationName":"a","localBindPort":1234,"destinationNamespace":"x"}],[{"destinationName":"a","localBindPort":1234,"destinationPartition":null}],[{"destinationName":"a","localBindPort":1234,"destinationPartition":""}],[{"destinationName":"a","localBindPort":1234,"destinationPartition":"x"}],[{"destinationName":"a","localBindPort":1234,"datacenter":null}],[{"destinationName":"a","localBindPort":1234,"datacenter":""}],[{"destinationName":"a","localBindPort":1234,"datacenter":"x"}],[{"destinationName":"a","localBindPort":1234,"destinationPeer":null}],[{"destinationName":"a","localBindPort":1234,"destinationPeer":""}],[{"destinationName":"a","localBindPort":1234,"destinationPeer":"x"}],[{"destinationName":"a","localBindPort":1234,"localBindAddress":null}],[{"destinationName":"a","localBindPort":1234,"localBindAddress":""}],[{"destinationName":"a","localBindPort":1234,"localBindAddress":"127.0.0.1"}],[{"destinationName":"a","localBindPort":1234,"localBindAddress":"127.0.0.5"}],[{"destinationName":"a","localBindPort":1234,"config":null}],[{"destinationName":"a","localBindPort":1234,"config":{}}],[{"destinationName":"a","localBindPort":1234,"config":{"a":1}}],[{"destinationName":"a","localBindPort":1234,"meshGateway":null}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{"mode":"local"}}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{"mode":"none"}}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{"mode":"remote"}}]]`, `[{},[{}],[{"destinationName":"a"}],[{"localBindPort":1}],[{"destinationName":"a","localBindPort":1,"x":1}],[{"destinationName":"a","localBindPort":1234,"destinationType":"x"}],[{"destinationName":"a","localBindPort":1234,"destinationType":""}],[{"destinationName":"a","localBindPort":1234,"destinationType":1}],[{"destinationName":"a","localBindPort":1234,"destinationNamespace":1}],[{"destinationName":"a","localBindPort":1234,"destinationPartition":1}],[{"destinationName":"a","localBindPort":1234,"datacenter":1}],[{"destinationName":"a","localBindPort":1234,"destinationPeer":1}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{}}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{"mode":"x"}}],[{"destinationName":"a","localBindPort":1234,"meshGateway":{"mode":null}}]]`},
		"proxy.meshGateway": {`[null,{"mode":"none"},{"mode":"local"},{"mode":"remote"}]`,
			`[{},{"mode":"x"}]`},
		"proxy.expose":                          {`[null,{},{"checks":true},{"checks":true,"paths":[]},{"paths":[{"listenerPort":1,"path":"/a","localPathPort":2,"protocol":"http"}]},{"paths":null},{"x":1},{"paths":[{"listenerPort":21500,"path":"/a","localPathPort":2}]}]`, `[]`},
		"gateway.kind":                          {`["mesh-gateway","terminating-gateway","api-gateway"]`, `[]`},
		"gateway.lanAddress":                    {`[null,{},{"address":"x"},{"port":1},{"address":null},{"port":null},{"address":""}]`, `[{"x":1},{"port":"1"},{"address":1}]`},
		"gateway.wanAddress":                    {`[null,{},{"address":"x"},{"port":1},{"address":null},{"port":null},{"address":""}]`, `[{"x":1},{"port":"1"},{"address":1}]`},
		"gateway.name":                          {`["","gw",null]`, `["GW"]`},
		"gateway.tags":                          {`[null]`, `[]`},
		"gateway.meta":                          {`[null]`, `[]`},
		"gateway.namespace":                     {`[null]`, `[]`},
		"gateway.partition":                     {`[null]`, `[]`},
		"gateway.proxy":                         {`[null,{},{"config":null},{"config":{}},{"config":{"a":1}}]`, `[]`},
		"gateway.healthCheckPort":               {`[null,0,22001]`, `["1"]`},
		"transparentProxy":                      {`[null,{}]`, `[[],{"x":1}]`},
		"transparentProxy.enabled":              {`[null,true,false]`, `["x"]`},
		"transparentProxy.excludeInboundPorts":  {`[null,[],[1,2]]`, `[[1,1],["1"],1]`},
		"transparentProxy.excludeOutboundPorts": {`[null,[],[1,2]]`, `[[1,1],["1"],1]`},
		"transparentProxy.excludeOutboundCIDRs": {`[null,[],["10.0.0.0/8","1.2.3.4","::/0"]]`,
			`[["1.2.3.4","1.2.3.4"]]`},
		"transparentProxy.excludeUIDs": {`[null,[],["1000"]]`, `[["1","1"],[1]]`},
		"transparentProxy.consulDNS":   {`[{},{"enabled":null},{"enabled":true},{"enabled":false}]`, `[null,{"x":1}]`},
		"consulHTTPAddr":               {`[]`, `["x",null]`},
		"consulCACertFile":             {`[]`, `["x"]`},
		"bootstrapDir":                 {`[]`, `["",null,5]`},
		"foo":                          {`[]`, `[1]`},
		"consulServers":                {`[]`, `[null,{},{"hosts":1},{"hosts":null},{"hosts":"a","x":1}]`},
		"service": {`[]`,
			`[null,[],{},{"port":null},{"port":1,"x":1},{"name":"web"},{"port":"80"}]`},
		"service.checks": {`[]`, `[[],null,[{"name":"x"}]]`},
		"gateway":        {`[]`, `[null,{},[],{"kind":"x"},{"kind":null},{"kind":"mesh-gateway","x":1}]`},
	} {
		for i, list := range values {
			var all []any
			if err := json.Unmarshal([]byte(list), &all); err != nil {
				t.Fatal(err)
			}
			for _, value := range all {
				doc := documentOf010(t, path, value)
				if _, _, err := Parse(doc); (err != nil) != (i == 1) {
					t.Errorf("%s: %v", doc, err)
				}
			}
		}
	}
}

// documentOf010 returns a small document of a service, or of a gateway, with a value at a path.
func documentOf010(t *testing.T, path string, value any) []byte {
	t.Helper()
	doc := map[string]any{"bootstrapDir": "/consul", "consulServers": map[string]any{"hosts": "consul"}}
	if strings.HasPrefix(path, "gateway") {
		doc["gateway"] = map[string]any{"kind": "mesh-gateway"}
	} else {
		maps.Copy(doc, map[string]any{"service": map[string]any{"name": "web", "port": 80}, "proxy": map[string]any{}})
	}
	names := strings.Split(path, ".")
	at := doc
	for _, name := range names[:len(names)-1] {
		if at[name] == nil {
			at[name] = map[string]any{}
		}
		at = at[name].(map[string]any)
	}
	at[names[len(names)-1]] = value
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

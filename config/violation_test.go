package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/meshtask/consul-ecs/config"
)

// in wraps fields of the document, so that a case shows what it is about.
func in(fields string) string { return `{"bootstrapDir":"/consul",` + fields + `}` }

func service(fields string) string { return in(`"service":{"port":1,` + fields + `}`) }
func check(fields string) string   { return service(`"checks":[{"ttl":"1s"},{` + fields + `}]`) }
func upstream(fields string) string {
	return in(`"proxy":{"upstreams":[{` + fields + `}]}`)
}

func expectViolations(t *testing.T, tests map[string]struct {
	doc  string
	want []string
}) {
	t.Helper()
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg, got, _, _ := parse(tt.doc)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if cfg != nil {
				t.Error("a configuration came with the violations")
			}
		})
	}
}

func TestSyntaxViolations(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 102) + "1" + strings.Repeat("}", 102)
	expectViolations(t, map[string]struct {
		doc  string
		want []string
	}{
		"unset":           {"", []string{`$: CONSUL_ECS_CONFIG_JSON is unset or empty: want a JSON object with at least bootstrapDir`}},
		"blank":           {" \n", []string{`$: CONSUL_ECS_CONFIG_JSON is unset or empty: want a JSON object with at least bootstrapDir`}},
		"cut off":         {"{\"bootstrapDir\":\n \"/consul\"", []string{`$: line 2, column 11: the document is cut off: unexpected end of JSON input`}},
		"trailing word":   {`{"bootstrapDir":"/consul"} x`, []string{`$: line 1, column 28: only one JSON object is allowed: invalid character 'x' after top-level value`}},
		"two objects":     {"{\"bootstrapDir\":\"/consul\"}\n{}", []string{`$: line 2, column 1: only one JSON object is allowed: invalid character '{' after top-level value`}},
		"missing comma":   {"{\"ä\":1 \"b\":2}", []string{`$: line 1, column 8: invalid character '"' after object key:value pair`}},
		"comment":         {"{\n// why\n}", []string{`$: line 2, column 1: invalid character '/' looking for beginning of object key string`}},
		"list":            {`[{"bootstrapDir":"/consul"}]`, []string{`$: must be an object, not a list`}},
		"null":            {`null`, []string{`$: must be an object, not null`}},
		"string":          {`"{}"`, []string{`$: must be an object, not a string`}},
		"number":          {`7`, []string{`$: must be an object, not a number`}},
		"key twice":       {"{\"bootstrapDir\":\"/a\",\n\"bootstrapDir\":\"/b\"}", []string{`$.bootstrapDir: line 2, column 14: given twice; keep one`}},
		"key twice below": {service(`"meta":{"a b":"1","a b":"2"}`), []string{`$.service.meta["a b"]: line 1, column 69: given twice; keep one`}},
		"absurd numbers": {in(`"service":{"port":1e999999999},"proxy":{"config":{"x":[1,-2E-301]}}`), []string{
			`$.proxy.config.x[1]: line 1, column 90: the number is too large or too small`,
			`$.service.port: line 1, column 55: the number is too large or too small`}},
		"number beyond float64": {in(`"proxy":{"config":{"x":` + strings.Repeat("9", 200) + `e200}}`), []string{
			`$.proxy.config.x: line 1, column 253: the number is too large or too small`}},
		"absurdly deep": {deep, []string{`$` + strings.Repeat(".a", 101) + `: line 1, column 504: nested more than 100 levels deep`}},
	})
}

func TestSchemaViolations(t *testing.T) {
	t.Parallel()
	expectViolations(t, map[string]struct {
		doc  string
		want []string
	}{
		"empty object":           {`{}`, []string{`$.bootstrapDir: is required; must be a string that is not empty`}},
		"empty directory":        {`{"bootstrapDir":""}`, []string{`$.bootstrapDir: must be a string that is not empty, not ""`}},
		"null directory":         {`{"bootstrapDir":null}`, []string{`$.bootstrapDir: must be a string that is not empty, not null`}},
		"lower-case log level":   {in(`"logLevel":"debug"`), []string{`$.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not "debug"`}},
		"empty log level":        {in(`"logLevel":""`), []string{`$.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not ""`}},
		"log level of two types": {in(`"logLevel":1`), []string{`$.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not a number`}},
		"log JSON":               {in(`"logJSON":"true"`), []string{`$.logJSON: must be true or false, not a string`}},
		"null service":           {in(`"service":null`), []string{`$.service: must be an object, not null`}},
		"null gateway":           {in(`"gateway":null`), []string{`$.gateway: must be an object, not null`}},
		"null port":              {in(`"service":{"port":null}`), []string{`$.service.port: must be an integer from 0 to 65535, not null`}},
		"no port":                {in(`"service":{}`), []string{`$.service.port: is required; must be an integer from 0 to 65535`}},
		"negative port":          {in(`"service":{"port":-1}`), []string{`$.service.port: must be an integer from 0 to 65535, not -1`}},
		"port beyond range":      {in(`"proxy":{"publicListenerPort":65536}`), []string{`$.proxy.publicListenerPort: must be an integer from 0 to 65535, not 65536`}},
		"fraction":               {in(`"service":{"port":80.5}`), []string{`$.service.port: must be an integer from 0 to 65535, not 80.5`}},
		"port as a string":       {in(`"service":{"port":"80"}`), []string{`$.service.port: must be an integer from 0 to 65535, not a string`}},
		"upper-case names": {in(`"service":{"port":1,"name":"Api"},"gateway":{"kind":"mesh-gateway","name":"GW"}`), []string{
			`$.gateway.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or digit, not "GW"`,
			`$.service.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or digit, not "Api"`}},
		"name with a dash at the end": {service(`"name":"api-"`), []string{`$.service.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or digit, not "api-"`}},
		"tag twice":                   {service(`"tags":["a","b","a"]`), []string{`$.service.tags[2]: must not repeat item 0`}},
		"container twice":             {in(`"healthSyncContainers":["app","app"]`), []string{`$.healthSyncContainers[1]: must not repeat item 0`}},
		"startup word":                {in(`"healthSyncContainers":["app"],"healthSync":{"startup":{"app":"grpc"}}`), []string{`$.healthSync.startup.app: must be "tcp" or a path that begins with "/", not "grpc"`}},
		"null tag":                    {service(`"tags":[null]`), []string{`$.service.tags[0]: must be a string, not null`}},
		"tags as a string":            {service(`"tags":"a,b"`), []string{`$.service.tags: must be a list of strings, not a string`}},
		"number as meta":              {service(`"meta":{"a":1}`), []string{`$.service.meta.a: must be a string, not a number`}},
		"meta as a list":              {service(`"meta":["a"]`), []string{`$.service.meta: must be an object whose values are each a string, not a list`}},
		"half the weights":            {service(`"weights":{"passing":1}`), []string{`$.service.weights.warning: is required; must be an integer from 0 to 65535`}},
		"weights of nothing":          {service(`"weights":{"passing":0,"warning":null}`), []string{`$.service.weights.passing: must be an integer from 1 to 65535, not 0`, `$.service.weights.warning: must be an integer from 0 to 65535, not null`}},
		"null check name and ID":      {check(`"name":null,"checkId":null`), []string{`$.service.checks[1].checkId: must be a string, not null`, `$.service.checks[1].name: must be a string, not null`}},
		"null check":                  {service(`"checks":[null]`), []string{`$.service.checks[0]: must be an object, not null`}},
		"checks as an object":         {service(`"checks":{}`), []string{`$.service.checks: must be a list of objects, not an object`}},
		"check status":                {check(`"status":"ok"`), []string{`$.service.checks[1].status: must be one of passing, warning, critical, maintenance, not "ok"`}},
		"check header":                {check(`"header":{"Authorization":"secret"}`), []string{`$.service.checks[1].header.Authorization: must be a list of strings, not a string`}},
		"interval without unit":       {check(`"interval":"10"`), []string{`$.service.checks[1].interval: must be a duration such as "10s" or "1m30s", not "10"`}},
		"interval as a number":        {check(`"interval":10`), []string{`$.service.checks[1].interval: must be a duration such as "10s" or "1m30s", not a number`}},
		"negative timeout":            {check(`"timeout":"-1s"`), []string{`$.service.checks[1].timeout: must be a duration such as "10s" or "1m30s", not "-1s"`}},
		"duration that overflows":     {check(`"ttl":"9999999999h"`), []string{`$.service.checks[1].ttl: must be a duration such as "10s" or "1m30s", not "9999999999h"`}},
		"negative count":              {check(`"successBeforePassing":-1`), []string{`$.service.checks[1].successBeforePassing: must be an integer from 0 to 2147483647, not -1`}},
		"upstream without port":       {upstream(`"destinationName":"db"`), []string{`$.proxy.upstreams[0].localBindPort: is required; must be an integer from 1 to 65535`}},
		"empty upstream": {upstream(``), []string{
			`$.proxy.upstreams[0].destinationName: is required; must be a string that is not empty`,
			`$.proxy.upstreams[0].localBindPort: is required; must be an integer from 1 to 65535`}},
		"upstream on port 0":   {upstream(`"destinationName":"db","localBindPort":0`), []string{`$.proxy.upstreams[0].localBindPort: must be an integer from 1 to 65535, not 0`}},
		"destination type":     {upstream(`"destinationName":"db","localBindPort":1,"destinationType":"query"`), []string{`$.proxy.upstreams[0].destinationType: must be one of service, prepared_query, not "query"`}},
		"mesh gateway mode":    {in(`"proxy":{"meshGateway":{"mode":"far"}}`), []string{`$.proxy.meshGateway.mode: must be one of none, local, remote, not "far"`}},
		"no mesh gateway mode": {upstream(`"destinationName":"db","localBindPort":1,"meshGateway":{}`), []string{`$.proxy.upstreams[0].meshGateway.mode: is required; must be one of none, local, remote`}},
		"opaque config":        {in(`"proxy":{"config":"{}"}`), []string{`$.proxy.config: must be an object, not a string`}},
		"no gateway kind":      {in(`"gateway":{}`), []string{`$.gateway.kind: is required; must be mesh-gateway`}},
		"gateway kind":         {in(`"gateway":{"kind":"ingress-gateway"}`), []string{`$.gateway.kind: must be mesh-gateway, not "ingress-gateway"`}},
		"gateway port":         {in(`"gateway":{"kind":"mesh-gateway","lanAddress":{"port":99999}}`), []string{`$.gateway.lanAddress.port: must be an integer from 0 to 65535, not 99999`}},
		"everything at once": {`{"logLevel":"x","service":{"port":"http","name":"A"},"consulLogin":{"enabled":"yes"},"bogus":1}`, []string{
			`$.bogus: unknown field; allowed: bootstrapDir, consulCACertFile, consulHTTPAddr, consulLogin, gateway, healthSync, healthSyncContainers, logJSON, logLevel, proxy, service`,
			`$.bootstrapDir: is required; must be a string that is not empty`,
			`$.consulLogin.enabled: must be true or false, not a string`,
			`$.logLevel: must be one of TRACE, DEBUG, INFO, WARN, ERROR, not "x"`,
			`$.service.name: must be empty or a name of a-z, 0-9, "-" and "_" that starts and ends with a letter or digit, not "A"`,
			`$.service.port: must be an integer from 0 to 65535, not a string`}},
	})
}

func TestUnknownFieldsAreRejectedWhereTheyAlwaysWere(t *testing.T) {
	t.Parallel()
	expectViolations(t, map[string]struct {
		doc  string
		want []string
	}{
		"root": {in(`"loglevel":"INFO"`), []string{`$.loglevel: unknown field; did you mean "logLevel"?; allowed: bootstrapDir, consulCACertFile, consulHTTPAddr, consulLogin, gateway, healthSync, healthSyncContainers, logJSON, logLevel, proxy, service`}},
		"consulLogin": {in(`"consulLogin":{"extraLoginFlags":["-x"]}`), []string{
			`$.consulLogin.extraLoginFlags: unknown field: removed in 0.6.0, because login no longer runs the consul command; use meta, region, stsEndpoint and serverIdHeaderValue; allowed: enabled, includeEntity, meta, method, region, serverIdHeaderValue, stsEndpoint`}},
		"weights":        {service(`"weights":{"passing":1,"warning":1,"critical":1}`), []string{`$.service.weights.critical: unknown field; allowed: passing, warning`}},
		"check":          {check(`"ttI":"1s"`), []string{`$.service.checks[1].ttI: unknown field; did you mean "ttl"?; allowed: aliasNode, aliasService, args, body, checkId, failuresBeforeCritical, grpc, grpcUseTls, h2ping, h2pingUseTls, header, http, interval, method, name, notes, status, successBeforePassing, tcp, timeout, tlsServerName, tlsSkipVerify, ttl, udp`}},
		"upstream":       {upstream(`"destinationName":"db","localBindPort":1,"destinationHost":"x"`), []string{`$.proxy.upstreams[0].destinationHost: unknown field; did you mean "destinationName"?; allowed: config, datacenter, destinationName, destinationNamespace, destinationPartition, destinationType, localBindAddress, localBindPort, meshGateway`}},
		"gateway":        {in(`"gateway":{"kind":"mesh-gateway","port":1}`), []string{`$.gateway.port: unknown field; allowed: kind, lanAddress, meta, name, namespace, partition, proxy, tags, wanAddress`}},
		"LAN address":    {in(`"gateway":{"kind":"mesh-gateway","lanAddress":{"prot":1}}`), []string{`$.gateway.lanAddress.prot: unknown field; did you mean "port"?; allowed: address, port`}},
		"WAN address":    {in(`"gateway":{"kind":"mesh-gateway","wanAddress":{"":1}}`), []string{`$.gateway.wanAddress[""]: unknown field; allowed: address, port`}},
		"of agentless":   {in(`"consulHTTPAddr":"h","transparentProxy":{}`), []string{`$.transparentProxy: belongs to a task without a Consul client agent (with consulServers); remove it`}},
		"not valid name": {in(`"gateway":{"kind":"mesh-gateway","lanAddress":{"a.b":1,"1":2}}`), []string{`$.gateway.lanAddress["1"]: unknown field; allowed: address, port`, `$.gateway.lanAddress["a.b"]: unknown field; allowed: address, port`}},
	})
}

func TestExposeIsValidated(t *testing.T) {
	t.Parallel()
	expectViolations(t, map[string]struct {
		doc  string
		want []string
	}{
		"wrong types": {in(`"proxy":{"expose":{"checks":"yes","paths":{}}}`), []string{
			`$.proxy.expose.checks: must be true or false, not a string`,
			`$.proxy.expose.paths: must be a list of objects, not an object`}},
		"empty path": {in(`"proxy":{"expose":{"paths":[{}]}}`), []string{
			`$.proxy.expose.paths[0].listenerPort: is required; must be an integer from 1 to 65535`,
			`$.proxy.expose.paths[0].localPathPort: is required; must be an integer from 1 to 65535`,
			`$.proxy.expose.paths[0].path: is required; must be a string that is not empty`}},
		"protocol": {in(`"proxy":{"expose":{"paths":[{"listenerPort":1,"path":"/","localPathPort":2,"protocol":"tcp"}]}}`), []string{
			`$.proxy.expose.paths[0].protocol: must be "http" or "http2", not "tcp"`}},
	})
}

func TestChecksExcludeHealthSyncBeforeAnyLogin(t *testing.T) {
	t.Parallel()
	const both = `$.service.checks: cannot be used together with healthSyncContainers; keep one of the two`
	tests := []struct {
		name, checks, containers, gateway string
		want                              []string
	}{
		{"0/0", ``, ``, ``, nil},
		{"1/0", `{"ttl":"1s"}`, ``, ``, nil},
		{"2/0", `{"ttl":"1s"},{"ttl":"2s"}`, ``, ``, nil},
		{"0/1", ``, `"app"`, ``, nil},
		{"0/2", ``, `"app","log"`, ``, nil},
		{"1/1", `{"ttl":"1s"}`, `"app"`, ``, []string{both}},
		{"gateway", `{"ttl":"1s"}`, `"app"`, `,"gateway":{"kind":"mesh-gateway"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, got, _, _ := parse(in(`"healthSyncContainers":[` + tt.containers + `],"service":{"port":1,"checks":[` + tt.checks + `]}` + tt.gateway))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestUpstreamsHaveDifferentDestinations(t *testing.T) {
	t.Parallel()
	const again = `: has the same destination as $.proxy.upstreams[0], and Consul takes each once; remove one of the two`
	for name, tt := range map[string]struct {
		first, second, root string
		agent, agentless    bool // is refused
	}{
		"same":                 {``, ``, ``, true, true},
		"same of a query":      {`"destinationType":"prepared_query",`, `"destinationType":"prepared_query",`, ``, true, true},
		"same in a datacenter": {`"datacenter":"dc2",`, `"datacenter":"dc2",`, ``, true, true},
		"other address":        {``, `"localBindAddress":"127.0.0.2",`, ``, true, true},
		"type written out":     {``, `"destinationType":"service",`, ``, true, false}, // the catalog accepts it
		"other type":           {``, `"destinationType":"prepared_query",`, ``, false, false},
		"other datacenter":     {``, `"datacenter":"dc2",`, ``, false, false},
		"other namespace":      {``, `"destinationNamespace":"default",`, ``, false, false},
		"other partition":      {``, `"destinationPartition":"default",`, ``, false, false},
		"gateway":              {``, ``, `"gateway":{"kind":"mesh-gateway"},`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstreams := `"proxy":{"upstreams":[{` + tt.first + `"destinationName":"db","localBindPort":1},{"destinationName":"api","localBindPort":3},{` + tt.second + `"destinationName":"db","localBindPort":2}]}`
			for servers, refused := range map[string]bool{``: tt.agent, `"consulServers":{"hosts":"a"},`: tt.agentless} {
				var want []string
				if refused {
					want = []string{`$.proxy.upstreams[2]` + again}
				}
				if _, got, _, _ := parse(in(tt.root + servers + upstreams)); !slices.Equal(got, want) {
					t.Errorf("%s: violations %q, want %q", servers, got, want)
				}
			}
		})
	}
}

func TestMissingProxyIsTheDefaultProxy(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{`"service":{"port":1}`, `"service":{"port":1},"proxy":null`} {
		cfg := mustParse(t, in(fields))
		if diff := cmp.Diff(&config.Proxy{PublicListenerPort: 20000}, cfg.Proxy); diff != "" {
			t.Errorf("%s: -want +got:\n%s", fields, diff)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	const (
		off     = `: no effect while consulLogin.enabled is not true`
		gateway = `: no effect in a gateway task`
		ours    = `: no effect: consul-ecs sets this key itself, so that services of stopped tasks can be found`
	)
	tests := map[string]struct {
		doc  string
		want []string
	}{
		"none": {service(`"name":"a"`), nil},
		"unknown fields that are ignored": {in(`"service":{"port":1,"prot":2,"zone":"a"},
			"proxy":{"publicListnerPort":1,"meshGateway":{"mode":"local","Mode":"none"},"expose":{"check":true,"paths":[{"listenerPort":1,"path":"/","localPathPort":2,"proto":"http"}]},
			"upstreams":[{"destinationName":"db","localBindPort":1,"meshGateway":{"mode":"none","x":{"deep":1}}}]}`), []string{
			`$.proxy.expose.check: unknown field, ignored; did you mean "checks"?`,
			`$.proxy.expose.paths[0].proto: unknown field, ignored`,
			`$.proxy.meshGateway.Mode: unknown field, ignored; did you mean "mode"?`,
			`$.proxy.publicListnerPort: unknown field, ignored; did you mean "publicListenerPort"?`,
			`$.proxy.upstreams[0].meshGateway.x: unknown field, ignored`,
			`$.service.prot: unknown field, ignored; did you mean "port"?`,
			`$.service.zone: unknown field, ignored`}},
		"unknown field in gateway.proxy": {in(`"gateway":{"kind":"mesh-gateway","proxy":{"conf":{}}}`), []string{
			`$.gateway.proxy.conf: unknown field, ignored; did you mean "config"?`}},
		"login settings without login": {in(`"consulHTTPAddr":"a","consulCACertFile":"b","consulLogin":{"method":"m","includeEntity":false,"meta":{"a":"b","consul.hashicorp.com/task-id":"x"},"region":"r","stsEndpoint":"s","serverIdHeaderValue":"h"}`), []string{
			`$.consulLogin.includeEntity` + off, `$.consulLogin.meta` + off,
			`$.consulLogin.method` + off, `$.consulLogin.region` + off, `$.consulLogin.serverIdHeaderValue` + off, `$.consulLogin.stsEndpoint` + off}},
		"login settings with login": {in(`"consulHTTPAddr":"a","consulCACertFile":"b","consulLogin":{"enabled":true,"method":"m","includeEntity":false,"meta":{"a":"b"},"region":"r","stsEndpoint":"s","serverIdHeaderValue":"h"}`), nil},
		"empty settings":            {in(`"consulHTTPAddr":"","consulCACertFile":null,"consulLogin":{"method":"","meta":{}}`), nil},
		"gateway": {in(`"healthSyncContainers":["app"],"service":{"port":1},"proxy":{},"gateway":{"kind":"mesh-gateway","wanAddress":{"port":443},"lanAddress":{"port":8444}}`), []string{
			`$.gateway.wanAddress.port: no effect without wanAddress.address`, `$.healthSyncContainers` + gateway, `$.proxy` + gateway + `; use gateway.proxy`, `$.service` + gateway}},
		"startup": {in(`"healthSyncContainers":["app"],"healthSync":{"startup":{"app":"tcp","side":"/health"}}`), []string{
			`$.healthSync.startup.side: no effect: the container is not in healthSyncContainers`}},
		"reserved keys of login meta": {in(`"consulLogin":{"enabled":true,"meta":{"consul.hashicorp.com/cluster":"c","consul.hashicorp.com/renewed":"r","consul.hashicorp.com/task-id":"t"}}`), []string{
			`$.consulLogin.meta["consul.hashicorp.com/cluster"]: no effect: consul-ecs sets this key itself, so that tokens of stopped tasks can be found`,
			`$.consulLogin.meta["consul.hashicorp.com/renewed"]: no effect: consul-ecs sets this key itself, so that the controller knows which tokens are replaced before they expire`,
			`$.consulLogin.meta["consul.hashicorp.com/task-id"]: no effect: consul-ecs sets this key itself, so that tokens of stopped tasks can be found`}},
		"reserved keys of service meta": {in(`"service":{"port":1,"meta":{"source":"mine","task-arn":"a","task-id":"t","b":"c"}}`), []string{
			`$.service.meta.source` + ours, `$.service.meta["task-arn"]` + ours, `$.service.meta["task-id"]` + ours}},
		"reserved keys of meta of a gateway": {in(`"gateway":{"kind":"mesh-gateway","meta":{"source":"mine"}}`), []string{`$.gateway.meta.source` + ours}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, violations, got, _ := parse(tt.doc)
			if violations != nil {
				t.Fatalf("unexpected violations: %v", violations)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFieldsAreCaseSensitive(t *testing.T) {
	t.Parallel()
	cfg, _, warnings, err := parse(service(`"NAME":"Not A Name","Tags":["x"]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&config.Service{Port: 1}, cfg.Service); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := []string{`$.service.NAME: unknown field, ignored; did you mean "name"?`, `$.service.Tags: unknown field, ignored; did you mean "tags"?`}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

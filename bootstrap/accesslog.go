package bootstrap

import (
	"encoding/json"
	"errors"
	"strings"
)

// accessLog returns the admin interface's log: /dev/null unless the mesh logs.
func accessLog(a *AccessLogs, bad *InvalidError) object {
	const path = "proxy-defaults.AccessLogs."
	if a == nil || !a.Enabled {
		return object{
			"name": "envoy.access_loggers.file",
			"typed_config": object{
				"@type": typeURL + "envoy.extensions.access_loggers.file.v3.FileAccessLog",
				"path":  "/dev/null",
			},
		}
	}
	format, err := logFormat(*a)
	if err != nil {
		bad.add(path+"JSONFormat", "must be a JSON object: %v", syntax(err, 0))
	}
	config := object{"logFormat": format}
	switch a.Type {
	case "", "stdout":
		config["@type"] = typeURL + "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog"
	case "stderr":
		config["@type"] = typeURL + "envoy.extensions.access_loggers.stream.v3.StderrAccessLog"
	case "file":
		config["@type"] = typeURL + "envoy.extensions.access_loggers.file.v3.FileAccessLog"
		config["path"] = a.Path
		if a.Path == "" {
			bad.add(path+"Path", "must be set for type file")
		}
	default:
		bad.add(path+"Type", "must be stdout, stderr or file, not %q", a.Type)
	}
	return object{"name": "Consul Listener Filter Log", "typedConfig": config}
}

func logFormat(a AccessLogs) (object, error) {
	switch {
	case a.JSONFormat != "":
		var fields map[string]json.RawMessage
		err := json.Unmarshal([]byte(a.JSONFormat), &fields)
		if err == nil && fields == nil {
			err = errors.New("is null")
		}
		return object{"jsonFormat": fields}, err
	case a.TextFormat != "":
		// One line per request.
		line := strings.TrimSuffix(a.TextFormat, "\n") + "\n"
		return object{"textFormatSource": object{"inlineString": line}}, nil
	}
	return object{"jsonFormat": defaultLogFields()}, nil
}

// defaultLogFields returns Consul's, in Envoy's command operators.
func defaultLogFields() map[string]string {
	return map[string]string{
		"authority":                         "%REQ(:AUTHORITY)%",
		"bytes_received":                    "%BYTES_RECEIVED%",
		"bytes_sent":                        "%BYTES_SENT%",
		"connection_termination_details":    "%CONNECTION_TERMINATION_DETAILS%",
		"downstream_local_address":          "%DOWNSTREAM_LOCAL_ADDRESS%",
		"downstream_remote_address":         "%DOWNSTREAM_REMOTE_ADDRESS%",
		"duration":                          "%DURATION%",
		"method":                            "%REQ(:METHOD)%",
		"path":                              "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
		"protocol":                          "%PROTOCOL%",
		"request_id":                        "%REQ(X-REQUEST-ID)%",
		"requested_server_name":             "%REQUESTED_SERVER_NAME%",
		"response_code":                     "%RESPONSE_CODE%",
		"response_code_details":             "%RESPONSE_CODE_DETAILS%",
		"response_flags":                    "%RESPONSE_FLAGS%",
		"route_name":                        "%ROUTE_NAME%",
		"start_time":                        "%START_TIME%",
		"upstream_cluster":                  "%UPSTREAM_CLUSTER%",
		"upstream_host":                     "%UPSTREAM_HOST%",
		"upstream_local_address":            "%UPSTREAM_LOCAL_ADDRESS%",
		"upstream_service_time":             "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
		"upstream_transport_failure_reason": "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
		"user_agent":                        "%REQ(USER-AGENT)%",
		"x_forwarded_for":                   "%REQ(X-FORWARDED-FOR)%",
	}
}

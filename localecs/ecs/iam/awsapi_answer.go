package iam

import (
	"encoding/xml"
	"net/http"

	"github.com/google/uuid"
)

const (
	stsNamespace = "https://sts.amazonaws.com/doc/2011-06-15/"
	iamNamespace = "https://iam.amazonaws.com/doc/2010-05-08/"
)

// namespace returns the XML namespace of a service's answers; STS's before the service is known.
func namespace(service string) string {
	if service == "iam" {
		return iamNamespace
	}
	return stsNamespace
}

type responseMetadata struct {
	RequestID string `xml:"RequestId"`
}

type errorResponse struct {
	XMLName xml.Name `xml:"ErrorResponse"`
	XMLNS   string   `xml:"xmlns,attr"`
	Error   struct {
		Type, Code, Message string
	}
	RequestID string `xml:"RequestId"`
}

func writeAWSError(w http.ResponseWriter, service string, e *Error) {
	id := uuid.New().String()
	body := errorResponse{XMLNS: namespace(service), RequestID: id}
	body.Error.Type, body.Error.Code, body.Error.Message = "Sender", e.Code, e.Message
	if e.Status >= http.StatusInternalServerError {
		body.Error.Type = "Receiver"
	}
	writeXML(w, e.Status, id, body)
}

// FailAWS answers as STS and IAM fail: 429 stands for their throttling, which has
// status 400; 500 and 503 are what they are. service is "sts" or "iam".
func FailAWS(w http.ResponseWriter, service string, status int) {
	switch status {
	case http.StatusTooManyRequests:
		writeAWSError(w, service, &Error{http.StatusBadRequest, "Throttling", "Rate exceeded"})
	case http.StatusServiceUnavailable:
		writeAWSError(w, service, &Error{status, "ServiceUnavailable", "Service is unavailable."})
	default:
		writeAWSError(w, service,
			&Error{status, "InternalFailure",
				"The request processing has failed because of an unknown error, exception or failure."})
	}
}

func writeXML(w http.ResponseWriter, status int, requestID string, v any) {
	body, _ := xml.MarshalIndent(v, "", "  ") // fails only for a type that XML cannot hold
	// Consul refuses an answer that is not text/xml.
	w.Header().Set("Content-Type", "text/xml")
	w.Header().Set("x-amzn-RequestId", requestID)
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // an error means the client is gone
}

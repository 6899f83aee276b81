package iam

import (
	"net/http"
	"strings"
)

// CredentialsPath is where Handler is to be mounted.
const CredentialsPath = "/v2/credentials/"

// RelativeURI returns the value of AWS_CONTAINER_CREDENTIALS_RELATIVE_URI.
func RelativeURI(id string) string { return CredentialsPath + id }

// Handler returns the credentials endpoint over a Store. It answers any method and asks for no
// authorisation, as the ECS agent.
func Handler(s *Store) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := strings.TrimPrefix(r.URL.Path, CredentialsPath)
		if id == "" {
			writeCredentialsError(w, http.StatusBadRequest, "NoIdInRequest", "No Credential ID in the request")
			return
		}
		k, err := s.Current(id)
		if err != nil {
			writeCredentialsError(w, http.StatusBadRequest, "InvalidIdInRequest", "Credentials not found")
			return
		}
		JSON(w, http.StatusOK, credentials{
			RoleArn:         k.RoleARN,
			AccessKeyID:     k.AccessKeyID,
			SecretAccessKey: k.Secret,
			Token:           k.Token,
			Expiration:      ConditionOf(r).Shift(k.Expires).UTC().Format("2006-01-02T15:04:05Z"),
		})
	})
}

// FailCredentials answers as the ECS agent fails here: 500, or 503 while it has no
// credentials yet.
func FailCredentials(w http.ResponseWriter, status int) {
	if status == http.StatusServiceUnavailable {
		writeCredentialsError(w, status, "CredentialsUninitialized", "Credentials uninitialized for ID")
		return
	}
	writeCredentialsError(w, status, "InternalServerError", "Internal server error")
}

type credentials struct {
	RoleArn         string
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	Expiration      string
}

func writeCredentialsError(w http.ResponseWriter, status int, code, message string) {
	JSON(w, status, struct {
		Code          string `json:"code"`
		Message       string `json:"message"`
		HTTPErrorCode int
	}{code, "CredentialsV2Request: " + message, status})
}

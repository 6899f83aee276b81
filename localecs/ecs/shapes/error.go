package shapes

import "fmt"

// Error is an error of the ECS API. Clients see Code as the exception's name.
type Error struct {
	Code, Message string
	// ResourceIDs goes with a ConflictException.
	ResourceIDs []string
}

// Error returns "code: message".
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Codes of errors.
const (
	ClientException           = "ClientException"
	InvalidParameterException = "InvalidParameterException"
	ClusterNotFoundException  = "ClusterNotFoundException"
	ConflictException         = "ConflictException"
	UnsupportedFeature        = "UnsupportedFeatureException"
	PlatformUnknown           = "PlatformUnknownException"
	ClusterContainsTasks      = "ClusterContainsTasksException"
	ClusterContainsServices   = "ClusterContainsServicesException"
	ServiceNotFound           = "ServiceNotFoundException"
	ServiceNotActive          = "ServiceNotActiveException"
	AccessDeniedException     = "AccessDeniedException"
	ThrottlingException       = "ThrottlingException"
	ServerException           = "ServerException"
)

// Errorf makes an error with a code.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an InvalidParameterException.
func Invalid(format string, args ...any) *Error {
	return Errorf(InvalidParameterException, format, args...)
}

// Client returns a ClientException.
func Client(format string, args ...any) *Error { return Errorf(ClientException, format, args...) }

package aclrules

# MISSING token 3f2a1b0c… → policy "hidden": it is not readable with this token: a token with acl:read can read it
# token 3f2a1b0c… → policy "eu-only": it applies in dc2 only, and this is dc1

# token 3f2a1b0c… → role "ops" → policy "ops" line 5
operator = "write"

# token 3f2a1b0c… → role "ops" → policy "ops" line 1
key_prefix "app/" { policy = "write" }

# token 3f2a1b0c… → role "ops" → policy "ops" line 2
# token 3f2a1b0c… → service identity "web" (sets read)
service_prefix "" { policy = "write" }

# token 3f2a1b0c… → role "ops" → policy "freeze" line 2
# token 3f2a1b0c… → service identity "web" (sets write)
service "web" { policy = "deny" }

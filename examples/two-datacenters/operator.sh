# What an operator does once, with the consul CLI: the datacenters become peers, and dc2
# exports stock to dc1. It ends when stock is healthy.
dc2=-http-addr=http://dc2.datacenters.local:8500
until token=$(consul peering generate-token $dc2 -name=dc1); do sleep 0.2; done
# Refused until the server of dc2 has its certificate, which it requests again up to a minute later.
until consul peering establish -name=dc2 -peering-token="$token"; do sleep 1; done
consul config write $dc2 - <<'END'
Kind = "exported-services"
Name = "default"
Services = [{ Name = "stock", Consumers = [{ Peer = "dc1" }] }]
END
consul config write $dc2 - <<'END'
Kind = "service-intentions"
Name = "stock"
Sources = [{ Name = "web", Peer = "dc1", Action = "allow" }, { Name = "*", Action = "deny" }]
END
until case $(consul watch $dc2 -type=service -service=stock-sidecar-proxy -passingonly=true) in *ServiceID*) true ;; *) false ;; esac; do
	sleep 0.2
done

package cleanup

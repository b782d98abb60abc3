"""docker-compose.yml and what it mounts and builds: as files, and run with what is installed here. No container engine is needed."""

"""Write every dashboard to `grafana/dashboards/`."""

from __future__ import annotations

from grafana.generate.output import FOLDER, files

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")

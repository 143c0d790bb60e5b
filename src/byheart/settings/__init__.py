"""Read and write the settings; no other folder reads the environment or the config file."""

from byheart.settings.config_file import default_config_path
from byheart.settings.reading import (
    SettingRow,
    describe_settings,
    holds_secrets,
    load_settings,
    overruled_settings,
    require_known,
    unknown_variables,
)
from byheart.settings.table import (
    RedactSecrets,
    Settings,
    data_folder,
    render_reference,
    setting_keys,
    variable_of,
)
from byheart.settings.writing import set_setting, unset_setting

__all__ = [
    "RedactSecrets",
    "SettingRow",
    "Settings",
    "data_folder",
    "default_config_path",
    "describe_settings",
    "holds_secrets",
    "load_settings",
    "overruled_settings",
    "render_reference",
    "require_known",
    "set_setting",
    "setting_keys",
    "unknown_variables",
    "unset_setting",
    "variable_of",
]

"""PURE: the settings in force, without what only their owner may know."""

from gateway.ops_answers import SettingAnswer, SettingsAnswer
from gateway.settings import GatewaySettings
from ingest.masking import shown


def settings_answer(settings: GatewaySettings) -> SettingsAnswer:
    """Show every setting by the name of its environment variable."""
    kind = type(settings)
    prefix = kind.model_config.get("env_prefix", "")
    found = []
    for name, one in kind.model_fields.items():
        variable = str(one.validation_alias or f"{prefix}{name.upper()}")
        value, default = getattr(settings, name), one.get_default()
        texts = shown(name, value), shown(name, default)
        found.append(SettingAnswer(variable, *texts, value == default))
    found.sort(key=lambda setting: setting.name)
    return SettingsAnswer(len(found), found)

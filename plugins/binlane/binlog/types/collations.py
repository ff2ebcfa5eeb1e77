"""The collation ids in logs, and their names.

The ids are those of MySQL 9.7 and MariaDB 11.8 (``information_schema.COLLATIONS``), which share one numbering: MySQL's
stop at 323, MariaDB's own begin at 576. A character set is the part of a collation's name before the first ``_``.
"""

from __future__ import annotations

import functools
from typing import Final

from binlane.model import Flavor

_NAMES: Final = """
armscii8: 32:general_ci 64:bin 1056:general_nopad_ci 1088:nopad_bin
ascii: 11:general_ci 65:bin 1035:general_nopad_ci 1089:nopad_bin
big5: 1:chinese_ci 84:bin 1025:chinese_nopad_ci 1108:nopad_bin
cp1250: 26:general_ci 34:czech_cs 44:croatian_ci 66:bin 99:polish_ci 1050:general_nopad_ci 1090:nopad_bin
cp1251: 14:bulgarian_ci 23:ukrainian_ci 50:bin 51:general_ci 52:general_cs 1074:nopad_bin 1075:general_nopad_ci
cp1256: 57:general_ci 67:bin 1081:general_nopad_ci 1091:nopad_bin
cp1257: 29:lithuanian_ci 58:bin 59:general_ci 1082:nopad_bin 1083:general_nopad_ci
cp850: 4:general_ci 80:bin 1028:general_nopad_ci 1104:nopad_bin
cp852: 40:general_ci 81:bin 1064:general_nopad_ci 1105:nopad_bin
cp866: 36:general_ci 68:bin 1060:general_nopad_ci 1092:nopad_bin
cp932: 95:japanese_ci 96:bin 1119:japanese_nopad_ci 1120:nopad_bin
dec8: 3:swedish_ci 69:bin 1027:swedish_nopad_ci 1093:nopad_bin
eucjpms: 97:japanese_ci 98:bin 1121:japanese_nopad_ci 1122:nopad_bin
euckr: 19:korean_ci 85:bin 1043:korean_nopad_ci 1109:nopad_bin
gb18030: 248:chinese_ci 249:bin 250:unicode_520_ci
gb2312: 24:chinese_ci 86:bin 1048:chinese_nopad_ci 1110:nopad_bin
gbk: 28:chinese_ci 87:bin 1052:chinese_nopad_ci 1111:nopad_bin
geostd8: 92:general_ci 93:bin 1116:general_nopad_ci 1117:nopad_bin
greek: 25:general_ci 70:bin 1049:general_nopad_ci 1094:nopad_bin
hebrew: 16:general_ci 71:bin 1040:general_nopad_ci 1095:nopad_bin
hp8: 6:english_ci 72:bin 1030:english_nopad_ci 1096:nopad_bin
keybcs2: 37:general_ci 73:bin 1061:general_nopad_ci 1097:nopad_bin
koi8r: 7:general_ci 74:bin 1031:general_nopad_ci 1098:nopad_bin
koi8u: 22:general_ci 75:bin 1046:general_nopad_ci 1099:nopad_bin
latin1: 5:german1_ci 8:swedish_ci 15:danish_ci 31:german2_ci 47:bin 48:general_ci 49:general_cs 94:spanish_ci
  1032:swedish_nopad_ci 1071:nopad_bin
latin2: 2:czech_cs 9:general_ci 21:hungarian_ci 27:croatian_ci 77:bin 1033:general_nopad_ci 1101:nopad_bin
latin5: 30:turkish_ci 78:bin 1054:turkish_nopad_ci 1102:nopad_bin
latin7: 20:estonian_cs 41:general_ci 42:general_cs 79:bin 1065:general_nopad_ci 1103:nopad_bin
macce: 38:general_ci 43:bin 1062:general_nopad_ci 1067:nopad_bin
macroman: 39:general_ci 53:bin 1063:general_nopad_ci 1077:nopad_bin
sjis: 13:japanese_ci 88:bin 1037:japanese_nopad_ci 1112:nopad_bin
swe7: 10:swedish_ci 82:bin 1034:swedish_nopad_ci 1106:nopad_bin
tis620: 18:thai_ci 89:bin 1042:thai_nopad_ci 1113:nopad_bin
ucs2: 35:general_ci 90:bin 128:unicode_ci 129:icelandic_ci 130:latvian_ci 131:romanian_ci 132:slovenian_ci
  133:polish_ci 134:estonian_ci 135:spanish_ci 136:swedish_ci 137:turkish_ci 138:czech_ci 139:danish_ci
  140:lithuanian_ci 141:slovak_ci 142:spanish2_ci 143:roman_ci 144:persian_ci 145:esperanto_ci 146:hungarian_ci
  147:sinhala_ci 148:german2_ci 149:croatian_ci 150:unicode_520_ci 151:vietnamese_ci 159:general_mysql500_ci
  640:croatian_ci 641:myanmar_ci 642:thai_520_w2 1059:general_nopad_ci 1114:nopad_bin 1152:unicode_nopad_ci
  1174:unicode_520_nopad_ci
ujis: 12:japanese_ci 91:bin 1036:japanese_nopad_ci 1115:nopad_bin
utf16: 54:general_ci 55:bin 101:unicode_ci 102:icelandic_ci 103:latvian_ci 104:romanian_ci 105:slovenian_ci
  106:polish_ci 107:estonian_ci 108:spanish_ci 109:swedish_ci 110:turkish_ci 111:czech_ci 112:danish_ci
  113:lithuanian_ci 114:slovak_ci 115:spanish2_ci 116:roman_ci 117:persian_ci 118:esperanto_ci 119:hungarian_ci
  120:sinhala_ci 121:german2_ci 122:croatian_ci 123:unicode_520_ci 124:vietnamese_ci 672:croatian_ci 673:myanmar_ci
  674:thai_520_w2 1078:general_nopad_ci 1079:nopad_bin 1125:unicode_nopad_ci 1147:unicode_520_nopad_ci
utf16le: 56:general_ci 62:bin 1080:general_nopad_ci 1086:nopad_bin
utf32: 60:general_ci 61:bin 160:unicode_ci 161:icelandic_ci 162:latvian_ci 163:romanian_ci 164:slovenian_ci
  165:polish_ci 166:estonian_ci 167:spanish_ci 168:swedish_ci 169:turkish_ci 170:czech_ci 171:danish_ci
  172:lithuanian_ci 173:slovak_ci 174:spanish2_ci 175:roman_ci 176:persian_ci 177:esperanto_ci 178:hungarian_ci
  179:sinhala_ci 180:german2_ci 181:croatian_ci 182:unicode_520_ci 183:vietnamese_ci 736:croatian_ci 737:myanmar_ci
  738:thai_520_w2 1084:general_nopad_ci 1085:nopad_bin 1184:unicode_nopad_ci 1206:unicode_520_nopad_ci
utf8mb3: 33:general_ci 76:tolower_ci 83:bin 192:unicode_ci 193:icelandic_ci 194:latvian_ci 195:romanian_ci
  196:slovenian_ci 197:polish_ci 198:estonian_ci 199:spanish_ci 200:swedish_ci 201:turkish_ci 202:czech_ci
  203:danish_ci 204:lithuanian_ci 205:slovak_ci 206:spanish2_ci 207:roman_ci 208:persian_ci 209:esperanto_ci
  210:hungarian_ci 211:sinhala_ci 212:german2_ci 213:croatian_ci 214:unicode_520_ci 215:vietnamese_ci
  223:general_mysql500_ci 576:croatian_ci 577:myanmar_ci 578:thai_520_w2 579:general1400_as_ci 1057:general_nopad_ci
  1107:nopad_bin 1216:unicode_nopad_ci 1238:unicode_520_nopad_ci
utf8mb4: 45:general_ci 46:bin 224:unicode_ci 225:icelandic_ci 226:latvian_ci 227:romanian_ci 228:slovenian_ci
  229:polish_ci 230:estonian_ci 231:spanish_ci 232:swedish_ci 233:turkish_ci 234:czech_ci 235:danish_ci
  236:lithuanian_ci 237:slovak_ci 238:spanish2_ci 239:roman_ci 240:persian_ci 241:esperanto_ci 242:hungarian_ci
  243:sinhala_ci 244:german2_ci 245:croatian_ci 246:unicode_520_ci 247:vietnamese_ci 255:0900_ai_ci
  256:de_pb_0900_ai_ci 257:is_0900_ai_ci 258:lv_0900_ai_ci 259:ro_0900_ai_ci 260:sl_0900_ai_ci 261:pl_0900_ai_ci
  262:et_0900_ai_ci 263:es_0900_ai_ci 264:sv_0900_ai_ci 265:tr_0900_ai_ci 266:cs_0900_ai_ci 267:da_0900_ai_ci
  268:lt_0900_ai_ci 269:sk_0900_ai_ci 270:es_trad_0900_ai_ci 271:la_0900_ai_ci 273:eo_0900_ai_ci 274:hu_0900_ai_ci
  275:hr_0900_ai_ci 277:vi_0900_ai_ci 278:0900_as_cs 279:de_pb_0900_as_cs 280:is_0900_as_cs 281:lv_0900_as_cs
  282:ro_0900_as_cs 283:sl_0900_as_cs 284:pl_0900_as_cs 285:et_0900_as_cs 286:es_0900_as_cs 287:sv_0900_as_cs
  288:tr_0900_as_cs 289:cs_0900_as_cs 290:da_0900_as_cs 291:lt_0900_as_cs 292:sk_0900_as_cs 293:es_trad_0900_as_cs
  294:la_0900_as_cs 296:eo_0900_as_cs 297:hu_0900_as_cs 298:hr_0900_as_cs 300:vi_0900_as_cs 303:ja_0900_as_cs
  304:ja_0900_as_cs_ks 305:0900_as_ci 306:ru_0900_ai_ci 307:ru_0900_as_cs 308:zh_0900_as_cs 309:0900_bin
  310:nb_0900_ai_ci 311:nb_0900_as_cs 312:nn_0900_ai_ci 313:nn_0900_as_cs 314:sr_latn_0900_ai_ci
  315:sr_latn_0900_as_cs 316:bs_0900_ai_ci 317:bs_0900_as_cs 318:bg_0900_ai_ci 319:bg_0900_as_cs 320:gl_0900_ai_ci
  321:gl_0900_as_cs 322:mn_cyrl_0900_ai_ci 323:mn_cyrl_0900_as_cs 608:croatian_ci 609:myanmar_ci 610:thai_520_w2
  611:general1400_as_ci 1069:general_nopad_ci 1070:nopad_bin 1248:unicode_nopad_ci 1270:unicode_520_nopad_ci
"""
UTF8MB4_GENERAL_CI: Final = 45
_NO_COLLATION: Final = 0xFFFF
_UCA1400_FIRST: Final = 2048
_UCA1400_CHARSETS: Final = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA1400_TAILORINGS: Final = (
    "", "icelandic_", "latvian_", "romanian_", "slovenian_", "polish_", "estonian_", "spanish_", "swedish_", "turkish_",
    "czech_", "danish_", "lithuanian_", "slovak_", "spanish2_", "roman_", "persian_", "esperanto_", "hungarian_",
    "sinhala_", "german2_", None, None, "vietnamese_", "croatian_",
)  # fmt: skip
_RENAMED_BY_MARIADB: Final = frozenset({122, 149, 181, 213, 245})
"""Ids of MySQL's ``_croatian_ci``, which MariaDB calls ``_croatian_mysql561_ci``; MariaDB's ``_croatian_ci``
differs."""


def _table() -> dict[int, str]:
    names = {63: "binary"}
    charset = ""
    for word in _NAMES.split():
        number, _, rest = word.partition(":")
        if not rest:
            charset = number
        else:
            names[int(number)] = f"{charset}_{rest}"
    return names


_BY_ID: Final = _table()
_COLLATIONS: Final = frozenset(_BY_ID.values())
_CHARSETS: Final = frozenset(name.partition("_")[0] for name in _BY_ID.values())


def collation_name(collation_id: int, server: Flavor) -> str | None:
    """The collation's name on a server of that family; None for an unknown id."""
    if collation_id >= _UCA1400_FIRST:
        return _uca1400_name(collation_id - _UCA1400_FIRST)
    name = _BY_ID.get(collation_id)
    if name is not None and server is Flavor.MARIADB and collation_id in _RENAMED_BY_MARIADB:
        return name.removesuffix("_ci") + "_mysql561_ci"
    return name


def collation_id(name: str, server: Flavor) -> int | None:
    """The collation's id on a server of that family; None for an unknown name."""
    return _ids(server).get(name)


def charset_id(charset: str) -> int:
    """The id of one of a character set's collations, of which no server has one for an unknown name."""
    known = {"utf8": "utf8mb3"}.get(charset, charset)
    return next((number for number, name in _BY_ID.items() if charset_name(name) == known), _NO_COLLATION)


@functools.cache
def _ids(server: Flavor) -> dict[str, int]:
    most = _UCA1400_FIRST + 256 * len(_UCA1400_CHARSETS)
    numbers = (*_BY_ID, *range(_UCA1400_FIRST, most)) if server is Flavor.MARIADB else _BY_ID
    return {name: number for number in numbers if (name := collation_name(number, server)) is not None}


def is_charset(name: str) -> bool:
    """Whether either family has, or had, a character set of that name; in lower case."""
    return name == "utf8" or name in _CHARSETS


def is_collation(name: str) -> bool:
    """Whether either family has, or had, a collation of that name; in lower case."""
    renamed = name.removesuffix("_mysql561_ci") + "_ci"
    known = name.replace("utf8_", "utf8mb3_", 1) if name.startswith("utf8_") else name
    return known in _COLLATIONS or renamed in _COLLATIONS or "uca1400_" in name


def charset_name(collation: str) -> str:
    """The character set of a collation."""
    return collation.partition("_")[0]


def _uca1400_name(number: int) -> str | None:
    """MariaDB's UCA 14 ids count character set, tailoring (32 of 8), padding, accents and case, in this order."""
    charset, rest = divmod(number, 256)
    tailoring, flags = divmod(rest, 8)
    if charset >= len(_UCA1400_CHARSETS) or tailoring >= len(_UCA1400_TAILORINGS):
        return None
    language = _UCA1400_TAILORINGS[tailoring]
    if language is None:
        return None
    padding = "nopad_" if flags & 4 else ""
    accents = "as" if flags & 2 else "ai"
    case = "cs" if flags & 1 else "ci"
    return f"{_UCA1400_CHARSETS[charset]}_uca1400_{language}{padding}{accents}_{case}"

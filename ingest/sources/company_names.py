"""Made-up company names in Hangul, and the sectors they speak of. Pure.

Nobody is meant: a name is three syllables drawn from lists, and perhaps a word of
its sector.
"""

from random import Random

# Open syllables, then light ones, then closed ones: that can be said, and sounds like
# a name rather than like a word.
_FIRST = (
    "가겨고구그나너노누느다더도두라려루마머모"
    "무미버벼비소수아어여오우이주차카코타토티"
    "파포푸피하허후해"
)
_SECOND = (
    "가고그나너노누늬다더두디라래러레려로루르"
    "리마머며모무므미바버벼브비서소수스아여오"
    "우울유즈츠트티하"
)
_THIRD = (
    "결곤굴날넌넬녹눈늘닌달던델돌둔들란람랑런"
    "렌룬른릴림만멜몬뭄민밴벨본빈빔셈솜숀슨슬"
    "욘욜운윤잔찬촌핀"
)

NAMES = len(_FIRST) * len(_SECOND) * len(_THIRD)
"""How many names there are."""

_WORDS_OF_SECTORS = {
    "반도체": ("반도체", "세미콘"),
    "전자부품": ("전자", "일렉"),
    "디스플레이": ("디스플레이", "비전"),
    "소프트웨어": ("소프트", "시스템"),
    "게임": ("게임즈", "플레이"),
    "통신": ("통신", "텔레콤"),
    "제약": ("제약", "팜"),
    "바이오": ("바이오", "셀"),
    "의료기기": ("메디칼", "메디텍"),
    "화장품": ("코스메틱", "뷰티"),
    "자동차부품": ("모터스", "오토텍"),
    "기계": ("기계", "정밀"),
    "조선": ("조선", "마린"),
    "철강": ("제강", "스틸"),
    "화학": ("화학", "케미칼"),
    "에너지": ("에너지", "솔라"),
    "건설": ("건설", "이앤씨"),
    "운송": ("해운", "로지스"),
    "유통": ("유통", "리테일"),
    "식품": ("식품", "푸드"),
    "의류": ("어패럴", "섬유"),
    "금융": ("캐피탈", "홀딩스"),
}
SECTORS = tuple(_WORDS_OF_SECTORS)


def create_names(seed: str, sectors: list[str]) -> list[str]:
    """Return a company name for each of these sectors, no two the same.

    At most ``NAMES``; of up to 20,000 each is the same however many there are.
    """
    stems = Random(f"{seed}/names").sample(range(NAMES), len(sectors))
    words = Random(f"{seed}/words")
    return [
        _spell(stem) + words.choice((*_WORDS_OF_SECTORS[sector], ""))
        for stem, sector in zip(stems, sectors, strict=True)
    ]


def _spell(number: int) -> str:
    number, third = divmod(number, len(_THIRD))
    first, second = divmod(number, len(_SECOND))
    return _FIRST[first] + _SECOND[second] + _THIRD[third]

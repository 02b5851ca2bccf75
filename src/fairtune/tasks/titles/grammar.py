"""Wrong titles as data: the kinds of error with their weights, the forms of each, and the words that invented lines are made of.

A kind is `name weight: what happens`, any other rule `name: form`; further forms follow, one per line, some after a weight.
`{rule}` puts in another rule, `{rule!}` in capitals, `{rule^}` in capitals now and then, `{rule-}` in small letters; `{1..9}` is a
number, `<a|b>` one of them. `{title}`, `{cut}`, `{other_title}` and so on are of the titles at hand, see `corruption.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TEXT = """
truncated_end 14: The end is missing, as where only the first line of a title was taken: "Networks of Sensors in", "A Survey:".
  7 {open_cut}
  3 {cut}
ellipsis 4: The end is replaced by dots: "A Theory of . . .".
  {cut}< . . .| . . .|...| ...|…>
truncated_start 3: The beginning is missing, as where only the last line of a title was taken: "of Sensors in Forests".
  7 {open_rest}
  3 {rest}
fragment 12: One to three words from anywhere on the page: a heading, a keyword, a stray piece of a line.
  8 <{piece}|{piece-}|{piece-}.|{piece!}>
  <•|–|●|*|{1..9}.|{1..9}.{1..9}|The> {piece}
running_header 4: A header or footer alone: page numbers, names, a shortened title.
  4 <|{1..1200} ><{surname} et al.|{surname!} ET AL.: {start!}|{surname!} AND {surname!}>
  4 <{start} {1..1200}|{1..1200} {start!}|Running head: {start!}|{1..300} CHAPTER {1..12}. {start!}|{person} / {start}>
  2 <Page {1..20} of {20..50}|{1..6} {1..6} {1..9}|Draft of {date}|<Chapter|Section|Part|Lecture> {1..15}>
journal_line 8: A line about the publication alone: journal, volume, pages, conference, publisher, DOI or report number.
  2 {journal^}<||||, {volume}|, {volume}| {volume}| {publisher^}>
  <{conference^}|{publisher^} {journal^}|{publisher^}|{volume}|{identifier}|{identifier}<| © {year} {publisher}>>
author_line 4: The authors' names alone, some with marks, e-mail, year or editor's role.
  2 {authors^}
  <<By|Edited by|Prepared by|Author:|Dr.|Prof.> {authors}|{authors} {email}|{authors} ({year})>
affiliation_line 5: A place of work alone: a university, a department, an address.
  4 {institution^}<||||.|,|;>
  <<1|2|∗|†|a|(1)> {institution}|{authors} {institution}|{institution} {email}|{institution} {date}>
section_word 9: A heading alone: "Abstract", "2. Related Work", "SUMMARY".
  6 {section^}<|||.|:| :| -| –| {1..40}>
  4 <{1..9}<|.|.1|.2|)|.1.>|I.|II.|IV.|§|•|({1..9})> {section^}
contents_line 3: A line of a table of contents, with dots and page numbers.
  <||<Contents|Table of Contents|CONTENTS> >{entry}<|| {entry}>
licence_line 3: A line about rights, copying or downloading.
  <©|Copyright|Copyright ©|Copyright (c)> {year} <|by ><{publisher}|{authors}><|. All rights reserved.>
  <Permission to make digital or hard copies|Permission to copy without fee all or part|All rights reserved. No part> of this work
  <Downloaded from {url}|Terms of use: {url}|Reprinted from {journal}, {volume}|License<:|> <GPL-2|LGPL|BSD|MIT|Creative Commons>>
front_matter 8: A line of a cover, a form or a thesis: "Prepared by", "Report Date", "Submitted to the Faculty of ...".
  5 {form^}<||||: {person}|: {date}|: {identifier}>
  <{1..9}. {form} {1..9}. {form}|{field} {form}|{field^} <Report|Preprint|Working Paper> Series>
  <A thesis|A dissertation|Submitted in partial fulfillment of the requirements> for the degree of {degree}<| in {field}>
  <<Supervisor|Advisor|Dean>: {person}, {institution}|<Prepared|Written|Produced|Supported|Funded> <by|for> the {institution}>
body_text 4: A piece of running text, a caption or a list item.
  <In this paper we|We> <present|study|propose|show that> the {some-}
  <{some-}. We show|This <paper|section> <describes|is about> {some-}|{some-},|the {some-}.|Key words: {some-}|(<i|a|1>) {some-};>
  <•|●|–|*|<Figure|Fig.|Table> {1..20}<:|.|>> {some-}<:|;|.|| • {end-}>
header_then_title 8: A header, a journal line or a page number stands before the title, or after it.
  12 {journal_line}<. | | | >{title}
  7 <{running_header}|{1..999}> {title}
  2 {title} <{journal_line}|{1..999} {1..9}>
section_then_title 6: A heading stands before the title: "Abstract Networks of Sensors", "1 Introduction Networks of Sensors".
  3 <||||{1..9} ><Abstract|Abstract.|ABSTRACT|<{front}|{front}|{front}|{front}>> {title}
  <{1..15}<.|.1|> {title}|{1..15}<.|.1|> {title}|{title} {section}>
title_and_authors 7: Authors or their place of work stand before or after the title.
  4 <{title} {authors^}|{title} <by|By|BY|-> <{authors}|{authors}|>|{authors}<|||:> {title}>
  3 <{institution^} {title}|{title} <|{authors} >{institution}>
title_in_citation 4: A piece of a reference: initials or a year before the title, a place of publication after it.
  4 <{initials}:|{surname}, {initials}:|{year}:|({year})|({year}).> {title}
  4 <[{1..60}] {surname} {initials}, {start}|({year}). {title}. {town}: {publisher}|{title}. {journal}|{title}, {journal}, {volume}>
  3 <“{title}”, {conference}|{title}. <J|Proc|Int J|Ann|Trans> <Appl|Biol|Phys|Math|Syst>< Sci| Lett|>|{title},” <presented at|in>>
title_then_note 5: A note stands after the title, or before it: where it was presented, who paid, where to find it.
  3 {title} <{identifier}<| {date}>|{date}<| {city}>|{form}|{url}|Available at {url}|Paper presented at the {conference}>
  5 {title} <<Prepared by|Submitted by|Prepared for|Edited by|Sponsored by>< {institution}| {authors}|>|<PhD|Master’s> Thesis>
  2 {title}< Abstract <We|This paper|In this paper we|The>|. We <present|consider|study|show|construct>| Final Report| Version 1.0>
  3 <{identifier}|<IN PRESS|To appear in|Submitted to>: {journal}> {title}
two_titles 4: Two titles, or a title and a piece of another, run together as one line.
  <{title} {other_title}|{end} {other_title}|{title} {other_start}|{other_start} {title}|{title}; {other_start}>
ocr_noise 3: Many letters misread: one in eight or so.
  {misread}
lost_spacing 1.5: Words run together, or letters stand apart.
  {spaced}
garbled 2: Letters of an unreadable font, or a formula.
  {unreadable}
  {sign}{sign}{sign}<{sign}| {sign}>{sign}{sign}<|{sign}{sign}{sign}| {sign} {sign} {sign}>

surname: <{last}|{last}|{last}|{last}{name_end}|{last}-{last}|<van|de|von|El|Di> {last}>
name_end: <ano|aro|berg|dini|dorf|enko|escu|etti|field|ford|ini|kar|man|mann|oglu|ova|ska|son|stein|wick>
initials: {letter}.<||{letter}.| {letter}.>
letter: <A|B|C|D|E|F|G|H|I|J|K|L|M|N|O|P|R|S|T|V|W>
person: <{first} {surname}|{first} {letter}. {surname}|{initials} {surname}|<{surname}, {initials}|{initials}{surname}>>
authors: {person}{mark}<|< and | & |, | ; >{person}{mark}|, {person}{mark}<,| and|, and|> {person}{mark}>
mark: <||||||1|2|1,2|∗|*|†| 1>
university: <University of|University of|Universität|Université de|Technical University of> {town}
  <{town}|{surname}> <University|University|Institute of Technology>
unit: <Department|Department|Department|Dept.|School|Institute|Faculty|Center|Laboratory|Division> of {fields}
institution: <|{unit}<, |, | | ; >>{university}<||, <||{1000..99999} |D-{1000..9999} >{city}>
  <{surname} <Research|Software|Systems> <Laboratories|Center|Corporation>|{town} <Bureau|Office|Ministry|Agency> of {field}>
email: {last-}@<cs|math|ee|phys|info>.{last-}.<edu|de|fr|ac.uk|it|org>
url: <|http://>www.{last-}<|{name_end}>.<org|com|edu|net|gov|ac.uk><||/~{last-}|/papers.html>
year: <19{75..99}|20{10..14}|200{1..9}>
date: <{month} {year}|{month} <{1..28}|{1..14}<-|–>{15..30}>, {year}|{1..28} {month} {year}|{1..28}/{1..12}/{year}>
month: <January|February|March|April|May|June|July|August|September|October|November|December>
fields: <{field}|{field}|{field}|{field}|{field} and {field}>
journal: <Journal of|Journal of|International Journal of|Annals of|Advances in|Current Opinion in|Lecture Notes in> {fields}
  <{fields}|{field} <Letters|Review|Today|Research>|BMC {field}|{society} Transactions on {fields}|J. <Comput|Biol>. <Sci|Phys>.>
volume: <Vol.|Volume|vol.|vol> {1..160}<, No. |, no. | no |, Issue >{1..12}<|, pp. {pages}, {year}|, {month} {year}>
  <{1..160} ({year}) {pages}|{1..160}({1..12}), {pages}|{1..160}, {pages} ({year})|({year}), pp. {pages}>
pages: <{1..99}|{1..5}{10..99}><-|–| - |-->{600..1900}
conference: <Proceedings of the |Proc. |>{2..40}th <|International >{meeting} on {fields}<|, {city}, {date}| ({acronym}’{10..99})>
  <{acronym} {year}|{acronym}’{10..99}, {date}, {city}|{society} {meeting} on {fields}, {city}|In Proceedings of {acronym}-{10..99}>
meeting: <Conference|Workshop|Symposium|Congress|Meeting>
acronym: {letter}{letter}{letter}<|{letter}|{letter}{letter}>
identifier: <doi:|DOI |DOI: >10.{1000..9999}/<{last-}{100..999}|s{10000..99999}-{100..999}-{1000..9999}-{1..9}>
  <ISSN {1000..9999}-{1000..9999}|ISBN 0-{1000..9999}-{1000..9999}-{1..9}|arXiv:{1000..1412}.{1000..9999}v{1..3}>
  <Technical Report|Working Paper|Discussion Paper|Report|Preprint> <|No. |Number: |{acronym}-TR-{10..99}-|{year}->{1..999}
entry: <|{1..9} |{1..9}.{1..6} |{1..9}. ><{section^}|{start^}|{start}>{dots}{dots}<|{1..300}| {1..300}|ii|iv>
dots: <....|........|..............| . . . . .| . . . . . . . . . . .>
front: <Summary|Introduction|1 Introduction|Contents|Chapter {1..12}|Part {1..9}|Title:|TITLE:|Research Article|Original Article>
  <ARTICLE|Article|Review|Rapid Communication|Technical Note|Letter|Working Paper|Editorial|Invited Paper|Lecture Notes|DRAFT>

sign: <∂|∑|∫|λ|α|β|→|≤|∈|=|+|−|(x)|(t)|u|n|f|R|^2|_i|⊗|×|/|2|1>
unreadable_letter: <Ö|Ó|Ò|Ø|×|�|Ù|Ð|Ñ|È|Ç|Å|¬|¨|Ô|Â|Ä|¾|½|¼|À>
misreading: <rn=m|m=rn|l=1|I=l|O=0|o=0|e=c|c=e|h=b|cl=d|d=cl|w=vv|S=5|B=8|t=f|u=n|n=u|i=!|g=q|fi= |fl= |ff= |fi=�|tion=t?on|a=?|
  e=>
note_mark: <∗|*| ∗| *| †| ⋆| 1|1|¹| ∗†| #>
function_word: <a|an|the|of|for|in|on|at|by|to|from|with|without|within|into|via|using|and|or|as|is|are|its|their|under|over|
  between|among|through|during|towards|against|based|upon|per|than|that|which|when|where|how|de|la|le|des|et|für|und|der|die|von>
first: <Adam|Ahmed|Akira|Alan|Alice|Amit|Ana|Andrea|Anna|Antonio|Barbara|Brian|Carlos|Chen|Christian|Claire|Daniel|David|Dmitri|
  Elena|Emma|Eric|Eva|Frank|George|Hans|Hassan|Helen|Hiroshi|Ivan|James|Jean|Jin|John|Karen|Kenji|Laura|Lin|Luca|Luis|Maria|Mark|
  Martin|Mary|Mehmet|Michael|Min|Olga|Paul|Peter|Pierre|Rajesh|Richard|Robert|Susan|Thomas|Wei|Jérôme|José|Jürgen>
last: <Abbott|Adler|Agarwal|Ahmad|Allen|Anderson|Baker|Banerjee|Bauer|Bell|Berg|Bernard|Bianchi|Black|Brown|Campos|Carter|Chang|
  Chen|Cheng|Choi|Clark|Cohen|Costa|Das|Davies|Diaz|Dubois|Evans|Fischer|Foster|Garcia|Gomez|Gray|Gupta|Hall|Hansen|Harris|Hughes|
  Ito|Ivanov|Jackson|Jain|Jones|Kato|Keller|Khan|Kim|King|Klein|Kowalski|Kumar|Larsen|Lee|Lewis|Li|Liu|Lopez|Ma|Martin|Mehta|
  Meyer|Miller|Moore|Moreau|Nagy|Nelson|Nguyen|Novak|Park|Patel|Perez|Petrov|Rao|Roberts|Rossi|Roy|Sato|Schmidt|Scott|Shah|Silva|
  Singh|Smirnov|Suzuki|Tanaka|Taylor|Torres|Walker|Wang|Weber|White|Wilson|Wong|Wu|Xu|Yang|Zhang|Zhou>
city: {town}, <Germany|France|Italy|UK|The Netherlands|Spain|Japan|China|India|Canada|Australia|Brazil|Texas|MA|California>
town: <Amsterdam|Athens|Barcelona|Beijing|Berlin|Boston|Budapest|Cambridge|Chicago|Copenhagen|Dublin|Edinburgh|Geneva|Hamburg|
  Helsinki|Kyoto|Lisbon|London|Lyon|Madrid|Melbourne|Montreal|Moscow|Munich|New York|Oslo|Paris|Prague|Rome|Seoul|Tokyo|Toronto|
  Vienna>
field: <Acoustics|Algebra|Applied Mathematics|Applied Physics|Artificial Intelligence|Astronomy|Biochemistry|Bioinformatics|
  Biology|Biomedical Engineering|Chemistry|Civil Engineering|Cognitive Science|Computer Engineering|Computational Linguistics|
  Computer Science|Computer Science|Control Systems|Cryptography|Data Mining|Ecology|Economics|Education|Electrical Engineering|
  Environmental Science|Epidemiology|Finance|Fluid Mechanics|Genetics|Geology|Geophysics|Image Processing|Information Science|
  Information Systems|Law|Logic|Linguistics|Machine Learning|Management Science|Materials Science|Mathematics|
  Mechanical Engineering|Medicine|Microbiology|Molecular Biology|Neural Networks|Neuroscience|Operations Research|Optics|
  Parallel Computing|Pattern Recognition|Philosophy|Physics|Psychology|Public Health|Remote Sensing|Robotics|Signal Processing|
  Social Sciences|Software Engineering|Statistics|Systems Engineering>
publisher: <Academic Press|ACM|ACM Press|American Mathematical Society|BioMed Central|Cambridge University Press|Elsevier|IEEE|
  Elsevier Science B.V.|IEEE Computer Society|John Wiley & Sons, Ltd.|Kluwer Academic Publishers|MIT Press|
  Nature Publishing Group|Oxford University Press|Pergamon Press|SIAM|Springer|Springer-Verlag|Springer-Verlag Berlin Heidelberg>
society: <IEEE|ACM|SIAM|AIAA|ASME|USENIX|IFIP|SPIE|AAAI|AMS|ESA|INRIA|CERN|NASA|NATO|OECD|WHO|UNESCO>
degree: <Doctor of Philosophy|Master of Science|Master of Engineering|Doctor of Science|Bachelor of Arts>
section: <Abstract|Summary|Introduction|Contents|Table of Contents|References|Bibliography|Acknowledgments|Conclusion|Conclusions|
  Discussion|Results|Results and Discussion|Methods|Materials and Methods|Methodology|Background|Motivation|Overview|Related Work|
  Previous Work|Preliminaries|Definitions|Notation|Appendix|Appendix A|Glossary|Index|Keywords|Index Terms|Objectives|Purpose|
  Scope|Executive Summary|List of Figures|List of Tables|Recommendations|Examples|Exercises|Preface|Problem Statement|Future Work|
  Figures|Experiments|Experimental Results|Evaluation|Implementation|Applications|Proof|Theorem|Remarks|Foreword|Editorial|
  Commentary|Erratum|Letter to the Editor|Book Review|Review Article|Original Article|Research Article|Short Communication|
  Technical Note|Case Report|Guest Editorial|Extended Abstract|Supplementary Material|About the Authors|Contributors|Disclaimer|
  Tables|Data|Model|Analysis|Notes|Case Study|Procedure|Participants|Questions|Highlights|Author Index|List of Symbols|Chapter 1|
  Chapter One|Part I|Section 2|News>
form: <Agenda|Approved by|Author(s)|Board of Directors|Call for Papers|Call for Participation|Contact Information|Contract Number|
  Date|Course Outline|Deliverable|Document History|Draft|Edited by|Editorial Board|Fact Sheet|Final Report|For Immediate Release|
  Instructor|Frequently Asked Questions|Instructions to Authors|Lecture Notes|Meeting Minutes|Members|Newsletter|Notice|
  Organizing Committee|Posters|Prepared by|Prepared for|Press Release|Principal Investigator|Program Committee|Project Number|
  Received|Registration Form|Report Date|Report Documentation Page|Requirements|Revision History|Slides|Sponsored by|
  Status Report|Submitted to|Supervisor|Syllabus|Technical Data|Title|Title Page|Topics|User Manual|Version History|Welcome|
  Work Package|Workshop Program>
"""
RULE = re.compile(r"(\w+)(?: ([\d.]+))?: ")


@dataclass(frozen=True)
class Kind:
    """One way in which extraction fails: how often it occurs, relative to the others, and what happens, in a line."""

    name: str
    weight: float
    help: str


def _parse() -> tuple[dict[str, Kind], dict[str, list[tuple[float, str]]]]:
    """The kinds, and the forms of every rule, each with its weight."""
    kinds: dict[str, Kind] = {}
    rules: dict[str, list[tuple[float, str]]] = {}
    for line in TEXT.replace("|\n  ", "|").split("\n"):
        form = line.strip()
        if (rule := RULE.match(line)) is not None:
            (name, weight), form = rule.groups(), line[rule.end() :]
            forms = rules[name] = []
            if weight:
                kinds[name] = Kind(name, float(weight), form)
                continue
        if form:
            first, _, rest = form.partition(" ")
            forms.append((float(first), rest) if first.isdigit() else (1.0, form))
    return kinds, rules


KINDS, RULES = _parse()


def words_of(rule: str) -> tuple[str, ...]:
    """The words of a rule that is nothing but a list."""
    return tuple(RULES[rule][0][1][1:-1].split("|"))

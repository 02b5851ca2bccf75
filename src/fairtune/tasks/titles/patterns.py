"""The lines that pages print besides their titles, as patterns: a rule is a name and below it its forms, each after its weight.

`{rule}` puts in another rule, `{rule!}` in capitals, `{rule^}` in capitals now and then; `{1..9}` a number; `<a|b>` one of them.
`{title}`, `{start}` (its first words), `{tail}` (some words of it) and `{end}` (its last words) are of the title at hand.
"""

from __future__ import annotations

PEOPLE = """
surname
  70 {last}
  20 {name_start}{name_end}
  5 {last}-{last}
  5 <van|van der|de|von|Mac|Al|El|Da|Di> {last}
initials
  3 {letter}.
  2 {letter}.{letter}.
  2 {letter}. {letter}.
person
  5 {first} {surname}
  2 {first} {letter}. {surname}
  3 {initials} {surname}
  1 {surname}, {initials}
  1 {initials}{surname}
  0.5 {surname} {initials}
field_or_two
  6 {field}
  1 {field} and {field}
place
  2 {city}
  1 {town}
university
  5 University of {town}
  3 {town} University
  2 {surname} University
  1 {town} Institute of Technology
  1 The University of {town}
  1 Technical University of {town}
  2 <Universität|Université de|Universidad de|Università di|Universiteit> {town}
  0.5 {surname} College
  0.5 {town} Business School
  0.5 Institut für <Informatik|Physik|Mathematik|Chemie>, Universität {town}
unit
  5 Department of {field_or_two}
  7 <Dept. of|School of|Institute of|Faculty of|Center for|Centre for|Laboratory of|Division of> {field_or_two}
  1 {field} Research Group
  1 National <Institute|Laboratory|Center|Bureau|Academy> of {field_or_two}
postcode
  2 <|>
  1 {1000..99999}<| >
  1 <A|B|CH|D|F>-{1000..9999}<| >
institution
  3 {university}
  3 {unit}<, |, | |; >{university}
  2 {unit}, {university}, {postcode}{place}
  2 {university}, {postcode}{place}
  1 {university} {unit}
  1 {unit}<|;|,>
  1 {surname} Research <Laboratories|Center|Institute|Foundation|Corporation>
  1 {surname} <Software|Systems|Technologies|Internet|Energy> <Corporation|Consortium|Inc.|Ltd.|Council|Association>
  1 {town} <Bureau|Department|Board|Office|Ministry|Agency> of {field}
  0.5 {society}, {place}
email
  1 {handle}@<cs|math|ee|phys|econ|info>.{handle}.<edu|de|fr|ac.uk|it|org>
"""

PUBLICATIONS = """
url
  2 http://{host}
  1 {host}
  1 http://{host}</~{handle}|/pub/{1..99}|/papers.html>
host
  1 www.{handle}<|{name_end}>.<org|com|edu|net|gov|ac.uk>
date
  2 {month} {year}
  2 {month} {1..28}, {year}
  1 {1..28} {month} {year}
  1 {month} {1..14}<-|–| - >{15..30}, {year}
  1 {year}
  0.5 {1..28}/{1..12}/{year}
journal
  4 Journal of {field_or_two}
  2 International Journal of {field_or_two}
  1 <European|American|Canadian|British|Asian> Journal of {field}
  4 <Annals of|Advances in|Current Opinion in|Lecture Notes in|Progress in|Reviews of|Frontiers in> {field_or_two}
  1 {society} Transactions on {field_or_two}
  4 {field} <Letters|Review|Today|Quarterly|Bulletin|Research>
  1 {field_or_two}
  1 BMC {field}
  1 Journal of {field}, {field}, and {field}
  1 Acta <Informatica|Mathematica|Physica|Materialia|Biologica|Numerica>
  0.5 J. <Comput|Appl|Theor|Exp|Math|Biol|Chem>. <Sci|Res|Eng|Phys|Soc>.
volume
  2 Vol. {1..160}, No. {1..12}, pp. {pages}, {year}
  1 Vol. {1..160}, No. {1..12}, {month} {year}
  1 {1..160} ({year}) {pages}
  1 {1..160}({1..12}), {pages}
  1 vol {1..160} no {1..12}
  1 {year}, {1..160}:{pages}
  1 Volume {1..160}<, Number| – No.|, Issue> {1..12}
  1 {1..160}, {pages} ({year})
  1 ({year}), pp. {pages}
  1 <vol.|volume> {1..160}, no. {1..12}
meeting
  1 <Conference|Workshop|Symposium|Congress|Meeting|Summit>
conference
  1 Proceedings of the {year} {field} {meeting}
  1 Proceedings of the {ordinal} International {meeting} on {field_or_two}
  1 Proc. {ordinal} {meeting} on {field_or_two}, {place}, {date}, pp. {pages}
  1 {ordinal} International {meeting} on {field_or_two} ({acronym}’{10..99})
  2 {acronym} {year}
  2 {acronym}-{acronym} {year}
  1 {acronym}’{10..99}, {date}, {place}
  1 {society} {meeting} on {field_or_two}, {place}, {date}
  1 In <Proc.|Proceedings> of {acronym}-{10..99}, pages {pages}
  1 {society} {date} {place}
  1 {field_or_two} ({year})
identifier
  1 doi:10.{1000..9999}/{handle}{100..999}
  1 DOI 10.{1000..9999}/s{10000..99999}-{100..999}-{1000..9999}-{1..9}
  1 DOI: 10.{1000..9999}/{handle}/{handle}{100..999}
  1 ISSN<:|> {1000..9999}-{1000..9999}< (Online)| (Print)|>
  1 ISBN 0-{1000..9999}-{1000..9999}-{1..9}
  3 <Technical Report|Working Paper|Discussion Paper|Report|Preprint|Contribution> <No. |Number: |>{1..999}
  1 Technical Report {acronym}-TR-{10..99}-{1..40}
  1 {society}/<TM|TP|CR|RR>-{year}-{1000..299999}
  1 {acronym} <Preprint|Report> {year}-{1..99}
  1 <Document|Contract|Project|Contribution> Number: {handle}{year}.{1..999}
  1 arXiv:{1000..1412}.{1000..9999}v{1..3}
"""

HEADERS = """
running_header
  2 {1..1200} {surname} et al.
  1 {surname} et al.
  1 {surname!} ET AL.: {start!}
  2 {1..1200} {surname!} AND {surname!}
  1 {initials} {surname}, {initials} {surname} / {start}
  1 {1..300} CHAPTER {1..12}. {start!}
  1 {start} {1..1200}
  1 {1..1200} {start!}
  1 Page {1..20} of {20..50}
  1 {1..6} {1..6} {1..9}
  1 Draft of {date}
  1 <Chapter|Section|Part|Lecture|Unit|Appendix> {1..15}
  1 Running head: {start!}
journal_line
  4 {journal^}
  3 {journal^}<, | >{volume}
  3 {conference^}
  1 {journal^} {publisher^}
  1 {publisher^} {journal^}
  1 {publisher^}
  1 {identifier}
  1 {identifier} © {year} {publisher}
  1 {volume}
  0.5 {1..2000} {journal}, {volume}
  0.5 Contents lists available at {host} {journal}
  0.5 {journal} journal homepage: {url}
  0.5 {host} {journal}
  0.5 {journal} – <Manuscript Draft|in press|Preprint|accepted for publication|to appear>
  0.5 {journal} {1..40} ({year}) <000–000|1–22|xxx-xxx>
author_line
  8 {authors^}
  1 {authors} {email}
  1 {authors} ({year})
  1 <By|by|Edited by|Prepared by|Author:|Dr.|Prof.> {authors}
  1 {first}
affiliation_line
  6 {institution^}
  1 {institution}<.|,|;>
  1 <1|2|∗|†|a|(1)> {institution}
  1 {authors} {institution}
  1 {institution} {email}
  0.5 {institution} {date}
"""

PAGES = """
section_word
  3 {section^}
  1 {section!}
  1 {section^}<.|:| :| -| –>
  2 {1..9}<|.|.1|.2|)|.1.> {section^}
  0.5 <I|II|III|IV|V|VI>. {section!}
  0.5 ({1..9}) {section^}
  0.5 {section} {section}
  0.5 {section^} {1..40}
  0.5 <A|B|§|•> {section}
contents_entry
  1 <|{1..9} |{1..9}.{1..6} |{1..9}. >{entry^}{dots}<|{1..300}| {1..300}|ii|iv>
entry
  1 {section}
  2 {start}
contents_line
  4 {contents_entry}
  2 {contents_entry} {contents_entry}
  1 <Contents|Table of Contents|CONTENTS> {contents_entry}
  1 <Contents|Table of Contents|CONTENTS> {section} <i|ii|v> {section} {1..9}
  1 {section} {1..9} {section} {10..20} {section} {20..40}
licence_line
  2 © {year} {publisher}<|. All rights reserved.>
  2 Copyright <©|(c)|> {year} <by |>{publisher}
  1 Copyright {year} {authors}
  1 Copyright {publisher} {year} Printed in <the USA|Great Britain|The Netherlands|Japan>
  1 Permission to make digital or hard copies of all or part of this work
  1 Permission to copy without fee all or part of this material is granted
  1 This is an Open Access article distributed under the terms of the Creative Commons Attribution License
  1 Downloaded from<| {url}| {host} on {date}>
  1 All rights reserved. No part of this publication may be reproduced
  2 License<:|> <GPL-2|GPL|LGPL|BSD|MIT|Apache 2.0|Creative Commons>< Version {1..4}.{1..9}|>
  1 This document is subject to copyright
  1 Approved for public release; distribution is unlimited.< {date}|>
  1 Reprinted from {journal}, {volume}
  1 The views expressed in this <paper|report> are those of the authors
  1 The copyright of this <article|thesis|work> belongs to {publisher}
  1 For personal use only. {publisher}
  1 Terms of use: {url}
front_matter
  6 {form^}
  1 {form}: {person}
  1 {form}: {date}
  1 {form}: {identifier}
  1 {1..9}. {form} {1..9}. {form}
  1 {field} {form}
  1 <A thesis|A dissertation|Thesis> submitted to the {university} for the degree of {degree}
  1 Submitted in partial fulfillment of the requirements for the degree of {degree} in {field}
  1 <Supervisor|Advisor|Examiner>: {person}, {institution}
  1 <Submitted|Report> to the {society} {field} <Committee|Board|Council|Panel>
  1 <Prepared|Written|Compiled|Produced> <by|for> the {institution}
  1 {field^} <Report|Preprint|Working Paper|Technical Report|Monograph> Series
  1 {society} Special Interest Group on {field}
  1 This <document|report|work|project> was <produced|prepared|supported|funded> by the {institution}
  1 <Professor|Director|Chair|Head|Dean> of {field}, {university}
body_text
  1 In this paper we <present|study|propose|describe> {tail}
  1 {tail}. We <show|construct|prove|consider|find>
  1 This <paper|chapter|section|report> <describes|deals with|is about> {tail}
  1 <Figure|Fig.|Table> {1..20}<:|.|> {tail}
  2 <•|●|–|*|�> {tail}<:|;|.|>
  1 <•|●|–|�> {tail}: <•|●|–|�> {end}
  1 (<i|ii|a|b|1>) {tail};
  1 {tail},
  1 the {tail}.
  1 Key words: {tail}
  1 <Home|Back|Print|Search> <Page|Help|Site Map> {section}
  1 <We|They|It|There> <show|found|is|are> that the {tail}
"""

MERGES = """
header_then_title
  12 {journal_line}<. | | | >{title}
  4 {running_header} {title}
  3 {1..999} {title}
  1 {title} {journal_line}
  1 {title} {1..999} {1..9}
front_section
  4 <Abstract|Abstract.|ABSTRACT>
  1 <Summary|Introduction|1 Introduction|Contents|Chapter {1..12}|Part {1..9}|Commentary>
  1 <Title:|Title|TITLE:|Paper Title:|Subject:>
  1 <ARTICLE|Article|Research Article|RESEARCH ARTICLE|Original Article|Original Paper|Review|Review Article>
  1 <Rapid Communication|Technical Note|Letter|Supplementary Material|Working Paper|Editorial|Invited Paper>
  1 <Short Communication|Case Report|Lecture Notes|Final Report|Special Issue|DRAFT|SECOND EDITION|Open Access>
section_then_title
  8 {front_section} {title}
  1 {1..9} {front_section} {title}
  2 {1..15}<.|.1|> {title}
  0.5 {1..15}. {title} {1..15} {1..15}. {title!}
  1 {title} {section}
title_and_authors
  5 {title} {authors^}
  2 {title} <by|By|BY|-> {authors}
  1 {title} <By|BY|by>
  3 {authors} {title}
  1 {authors}: {title}
title_and_affiliation
  3 {institution^} {title}
  2 {title} {institution}
  1 {title} {authors} {institution}
  1 <?|*|∗|1> {institution}, {year} {title}
title_in_citation
  3 {initials}: {title}
  1 {surname}, {initials}: {title}
  1 ({year})<|.> {title}
  1 ({year}). {title}. {town}: {publisher}
  1 {surname}, {initials} ({year}). {start}
  1 {year}: {title}
  1 {title}. {journal}
  1 {title}, {journal}, {volume}
  2 {title}. <J|Proc|Int J|Ann|Trans|Appl|Adv|Comput|Theor> <Comput|Appl|Biol|Phys|Math|Theory|Syst>< Sci| Lett| Eng|>
  1 {title},” <presented at|in|submitted to|Ph.D. dissertation>
  1 [{1..60}] {surname} {initials}, {start}
  1 “{title}”, {conference}
  1 {end}. {journal} {1..99}:
title_then_note
  1 {title} Paper presented at the {conference}
  2 {title} {identifier}
  1 {title} {identifier} {date}
  2 {title} <Prepared by|Submitted by|Prepared for|Edited by|Sponsored by|Developed by>< {institution}|>
  1 {title} Available <at|from|online> {url}
  2 {title} <PhD Thesis|Master’s Thesis|Final Report|Diploma Thesis|Version 1.0|Seminar Paper>
  1 {title} <Advisor:|Committee:|Prepared by> {authors}
  1 {title} {date}< {place}|>
  1 {title} Abstract <We|This paper|In this paper we|The>
  1 {title}. We <present|consider|study|show|construct>
  1 {title} {form}
  2 {identifier} {title}
  1 <IN PRESS|To appear in|Submitted to|Accepted by>: {journal} {title}
  1 {title} {url}
  1 {title} {field} Working Paper<| {1..99}>
"""

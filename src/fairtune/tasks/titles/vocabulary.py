"""Words that invented lines are made of: ordinary names, places, fields, and the fixed phrases of printed pages."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    """Phrases that `|` or a line's end separates."""
    return tuple(phrase.strip() for line in text.splitlines() for phrase in line.split("|"))


FIRST_NAMES = _words(
    """Adam Agnes Ahmed Akira Alan Alice Amit Ana Anders Andrea Anita Anna Antonio Arjun Arthur Barbara Beatriz Bernd
    Bo Boris Brian Bruno Carla Carlos Catherine Chen Christian Claire Claudia Daniel David Deepak Diana Diego Dmitri
    Dorota Edward Elena Elif Emma Enrique Eric Eva Fatima Felix Fernando Florence Frank Gabriel Georg George Giulia
    Grace Gustavo Hana Hans Harold Hassan Helen Henrik Hiroshi Ian Igor Ines Irene Isabel Ivan Jack Jan Jane Javier
    Jean Jerome Jin John Jorge Jun Karen Karl Katarina Keith Kenji Kevin Kumar Lars Laura Leila Leo Lin Linda Luca
    Lucia Luis Magnus Marco Margaret Maria Marie Mario Mark Marta Martin Mary Matthias Mehmet Mei Michael Miguel Min
    Mohammed Monika Nadia Naoko Nicolas Nina Olga Oliver Oscar Pablo Patricia Paul Pavel Pedro Peter Philip Pierre
    Rachel Rafael Rajesh Ralf Richard Rita Robert Rosa Ruth Samuel Sandra Sanjay Sara Satoshi Sergei Simon Sofia
    Stefan Steven Sunil Susan Sven Takeshi Tamara Thomas Tomas Ursula Vera Victor Vijay Walter Wei William Xavier
    Yan Yasmin Yoshi Yuri Yusuf Zhang Zoe Jérôme François José Jürgen Łukasz Zoltán Björn Søren Mónica André"""
)
LAST_NAMES = _words(
    """Abbott Adler Agarwal Ahmad Allen Almeida Alvarez Anderson Andersson Arora Baker Banerjee Barnes Bauer Becker
    Bell Bennett Berg Bernard Bianchi Black Bosch Brandt Brown Bryant Campos Cardoso Carter Castro Chan Chang Chen
    Cheng Choi Clark Cohen Collins Conti Cooper Costa Cruz Das Davies Delgado Demir Desai Diaz Dietrich Dubois
    Edwards Eriksson Evans Farouk Ferrari Fischer Fontaine Foster Fraser Fuchs Fujita Garcia Gomez Gonzalez Graham
    Gray Green Gupta Haas Hall Hamilton Han Hansen Harris Hartmann Hayashi Henry Hernandez Hoffmann Horvat Hughes
    Hunt Ibrahim Ito Ivanov Iyer Jackson Jain Jensen Jimenez Johansson Jones Kaplan Kato Kaufmann Keller Kelly Khan
    Kim King Klein Kobayashi Koch Kowalski Kumar Lambert Larsen Lee Lehmann Lewis Li Lin Lindberg Liu Lopez Lund Ma
    Maier Marchetti Martin Martinez Mason Mehta Mendes Meyer Miller Mishra Moore Morales Moreau Morgan Morris
    Mueller Murphy Nagy Nakamura Nelson Neumann Nguyen Nielsen Novak Oliveira Olsen Ortega Osman Ozturk Park Parker
    Patel Pereira Perez Peters Petrov Phillips Popov Prasad Price Ramos Rao Reed Reyes Richter Rivera Roberts Rossi
    Roy Russo Saito Sanchez Santos Sato Schmidt Schneider Schulz Scott Sen Shah Sharma Shaw Silva Simmons Singh
    Smirnov Sokolov Suzuki Svensson Takahashi Tanaka Taylor Thompson Torres Tran Turner Vargas Vasquez Verma
    Virtanen Vogel Wagner Walker Wang Ward Watanabe Weber Weiss White Wilson Winkler Wong Wood Wright Wu Xu Yamamoto
    Yang Yilmaz Young Zhang Zhao Zimmermann Zhou"""
)
NAME_STARTS = _words(
    "Al Ar Bal Bor Bra Cal Cor Dal Dem Far Fen Gal Gor Hal Hol Kar Kor Lan Mal Mor Nor Pas Rad San Tal Var"
)
NAME_ENDS = _words(
    """ano aro berg dini dorf ell enko escu etti field ford idis ini kar man mann nen oglu onen ova ska son stein tov
    wick"""
)
CITIES = _phrases(
    """Amsterdam, The Netherlands|Ankara, Turkey|Athens, Greece|Atlanta, GA|Austin, Texas|Bangalore, India
    Barcelona, Spain|Beijing, China|Berlin, Germany|Bologna, Italy|Boston, MA|Brisbane, Australia|Brussels, Belgium
    Budapest, Hungary|Buenos Aires, Argentina|Cairo, Egypt|Cambridge, UK|Cape Town, South Africa|Chicago, IL
    Copenhagen, Denmark|Dublin, Ireland|Edinburgh, Scotland|Geneva, Switzerland|Grenoble, France|Haifa, Israel
    Hamburg, Germany|Helsinki, Finland|Hong Kong|Istanbul, Turkey|Kyoto, Japan|Lisbon, Portugal|London, U.K.
    Los Angeles, CA|Lyon, France|Madison, WI|Madrid, Spain|Manchester, UK|Melbourne, Australia|Mexico City, Mexico
    Montreal, Canada|Moscow, Russia|Munich, Germany|Nairobi, Kenya|New Delhi, India|New York, NY|Oslo, Norway
    Padova, Italy|Paris, France|Philadelphia, PA|Pittsburgh, PA|Prague, Czech Republic|Rome, Italy
    San Diego, California|Sao Paulo, Brazil|Seattle, WA|Seoul, Korea|Shanghai, China|Singapore|Stockholm, Sweden
    Sydney, Australia|Taipei, Taiwan|Tel Aviv, Israel|Tokyo, Japan|Toronto, Ontario|Toulouse, France|Trieste, Italy
    Vancouver, BC|Vienna, Austria|Warsaw, Poland|Washington, DC|Zurich, Switzerland"""
)
FIELDS = _phrases(
    """Acoustics|Aerospace Engineering|Agricultural Economics|Algebra|Anatomy|Anthropology|Applied Mathematics
    Applied Mechanics|Applied Physics|Artificial Intelligence|Astronomy|Astrophysics|Atmospheric Science
    Biochemistry|Bioinformatics|Biological Sciences|Biology|Biomedical Engineering|Biophysics|Botany
    Business Administration|Cardiology|Cell Biology|Chemical Engineering|Chemistry|Civil Engineering
    Cognitive Science|Combinatorics|Computational Linguistics|Computer Engineering|Computer Science|Control Systems
    Cryptography|Data Mining|Decision Sciences|Demography|Development Studies|Earth Sciences|Ecology|Econometrics
    Economics|Education|Electrical Engineering|Electronics|Energy Policy|Environmental Science|Epidemiology
    Ergonomics|Evolutionary Biology|Finance|Fluid Mechanics|Forestry|Genetics|Geography|Geology|Geophysics
    Graph Theory|Health Services|History|Human Factors|Hydrology|Image Processing|Immunology|Industrial Engineering
    Information Science|Information Systems|Information Technology|Law|Linguistics|Logic|Machine Learning
    Management Science|Marine Science|Marketing|Materials Science|Mathematics|Mechanical Engineering|Medicine
    Meteorology|Microbiology|Mobile Computing|Molecular Biology|Multimedia|Music|Natural Resources|Neural Networks
    Neuroscience|Nuclear Physics|Number Theory|Nursing|Oceanography|Operations Research|Optics|Organic Chemistry
    Parallel Computing|Pattern Recognition|Pediatrics|Pharmacology|Philosophy|Physics|Physiology|Plant Science
    Political Science|Probability|Psychiatry|Psychology|Public Health|Public Policy|Quantum Physics
    Radiology|Remote Sensing|Robotics|Signal Processing|Social Sciences|Sociology
    Software Engineering|Solid State Physics|Statistics|Surgery|Systems Engineering|Telecommunications
    Theoretical Computer Science|Transportation|Urban Studies|Veterinary Science|Visual Computing|Wireless Networks
    Zoology"""
)
PUBLISHERS = _phrases(
    """Academic Press|ACM|ACM Press|American Institute of Physics|American Mathematical Society|BioMed Central
    Birkhäuser Verlag|Blackwell Publishing|Cambridge University Press|Elsevier|Elsevier Science B.V.
    Elsevier Science Ltd|IEEE|IEEE Computer Society|Institute of Physics Publishing|IOP Publishing Ltd
    John Wiley & Sons, Ltd.|Kluwer Academic Publishers|MIT Press|Morgan Kaufmann|National Academy Press
    Nature Publishing Group|Oxford University Press|Pergamon Press|Plenum Press|Royal Society of Chemistry
    SAGE Publications|SIAM|Springer|Springer-Verlag|Springer-Verlag Berlin Heidelberg|Taylor & Francis
    The Royal Society|Wiley-Liss, Inc.|World Scientific Publishing Company"""
)
MONTHS = _words("January February March April May June July August September October November December")
SOCIETIES = _words(
    "IEEE ACM SIAM AIAA ASME USENIX IFIP IFAC SPIE AAAI IEE AMS ESA INRIA CERN NASA NATO OECD WHO IMF UNESCO"
)
DEGREES = _phrases(
    """Doctor of Philosophy|Master of Science|Master of Engineering|Doctor of Science|Bachelor of Arts"""
)
SECTIONS = _phrases(
    """Abstract|Abstracts|Summary|Executive Summary|Introduction|Contents|Table of Contents|List of Figures
    List of Tables|References|Reference|Bibliography|Acknowledgments|Acknowledgements|Acknowledgement|Preface
    Foreword|Conclusion|Conclusions|Discussion|Results|Results and Discussion|Methods|Materials and Methods
    Methodology|Background|Motivation|Overview|Related Work|Previous Work|Preliminaries|Definitions|Notation
    Appendix|Appendix A|Glossary|Index|Keywords|Key words|Index Terms|Objectives|Purpose|Scope|Aim|Description
    Discussion and Conclusions|Conclusions and Recommendations|Recommendations|Example|Examples|Exercises
    Problem Statement|Future Work|Experiments|Experimental Results|Evaluation|Implementation|Applications|Proof
    Theorem|Proposition|Remarks|Concluding Remarks|Editorial|Letter to the Editor|Letters|Commentary|Erratum
    Corrigendum|Book Review|Review Article|Original Article|Original Paper|Research Article
    Research Paper|Short Communication|Rapid Communication|Technical Note|Case Report|Guest Editorial|Invited Paper
    Position Paper|Working Paper|Extended Abstract|Supplementary Material|Supporting Information|Online Appendix
    Biography|Biographies|About the Author|About the Authors|Contributors|Disclaimer|Dedication|Errata|Figures
    Tables|Data|Model|The Model|Theory|Analysis|Case Study|Procedure|Participants
    Statement of the Problem|Questions|Answers|Highlights|Author Index|Subject Index|List of Symbols
    List of Abbreviations|Chapter 1|Chapter One|Part I|Section 2|Note|Notes|News|Review"""
)
FORM_WORDS = _phrases(
    """Agenda|Approved by|Author(s)|Board of Directors|Call for Papers
    Call for Participation|Committee Members|Contact Information|Contract Number|Course Outline|Date|Deliverable
    Distribution Statement|Document Control|Document History|Draft|Edited by
    Editorial Board|Examination Committee|Fact Sheet|Final Report|For Immediate Release
    For Internal Use Only|Frequently Asked Questions|Further Information|General Description|Instructions to Authors
    Instructor|Lecture Notes|Meeting Minutes|Members|Mission Statement|Name of Author|Newsletter|Notice
    Organizing Committee|Posters|Prepared by|Prepared for|Press Release|Price List
    Principal Investigator|Program Committee|Program Schedule|Project Number|Quick Start|Reading List|Received
    Registration Form|Report Date|Report Documentation Page|Requirements|Research Staff|Revised
    Revision History|Slides|Specifications|Sponsored by|Status Report|Student Handbook|Submitted to|Supervisor
    Syllabus|Technical Data|Title|Title Page|Topics|User Manual|User's Guide
    Version History|Welcome|Work Package|Workshop Program"""
)
FUNCTION_WORDS = frozenset(
    _words(
        """a an the of for in on at by to from with without within into onto via using and or as is are its their under
    over between among through during toward towards against based upon per than that which when where how de la le
    des et für und der die von"""
    )
)

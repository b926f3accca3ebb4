"""The course: eleven chapters that teach a transformer on models that byhand works out.

chapters/     the words, in both languages      syllabus    these files as data
materials     passes and records of a chapter   sentences   their numbers within sentences
shown         their pictures and tables         sheets      exercises as files of claims
composition   pages and the course as a book
"""

/* A template's text into tokens: data, and the words and signs between {{ }} and {% %}. */
#ifndef QVL_TEXT_JINJA_LEXER_H
#define QVL_TEXT_JINJA_LEXER_H

#include "text/jinja/value.h"

typedef enum jinja_token_kind {
    TOKEN_END,
    TOKEN_DATA,
    TOKEN_VARIABLE_BEGIN,
    TOKEN_VARIABLE_END,
    TOKEN_BLOCK_BEGIN,
    TOKEN_BLOCK_END,
    TOKEN_NAME,
    TOKEN_STRING,
    TOKEN_INTEGER,
    TOKEN_FLOAT,
    TOKEN_ADD,
    TOKEN_SUB,
    TOKEN_DIV,
    TOKEN_FLOORDIV,
    TOKEN_MUL,
    TOKEN_MOD,
    TOKEN_POW,
    TOKEN_TILDE,
    TOKEN_LBRACKET,
    TOKEN_RBRACKET,
    TOKEN_LPAREN,
    TOKEN_RPAREN,
    TOKEN_LBRACE,
    TOKEN_RBRACE,
    TOKEN_EQ,
    TOKEN_NE,
    TOKEN_GT,
    TOKEN_GE,
    TOKEN_LT,
    TOKEN_LE,
    TOKEN_ASSIGN,
    TOKEN_DOT,
    TOKEN_COLON,
    TOKEN_PIPE,
    TOKEN_COMMA,
    TOKEN_SEMICOLON
} jinja_token_kind;

typedef struct jinja_token {
    uint8_t kind;
    uint32_t offset;   /* in the source */
    jinja_value value; /* of data, names, strings and numbers */
} jinja_token;

/* Tokens are made in the run's arena. source: \n only, valid UTF-8, without the one newline at its end. */
bool jinja_lex(jinja_run *run, const char *source, size_t length, jinja_token **tokens, size_t *count);

/* How a token is named in messages. */
const char *jinja_describe(jinja_token_kind kind);

#endif

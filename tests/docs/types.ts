/** One TypeScript program checks every ts block of the pages, and knows what the entry points of the package export. */
import { join } from 'node:path'
import ts from 'typescript'
import { CHECKOUT } from './application.ts'

/** `@types` are not the package's; a user installs them. */
export function typesOf(files: readonly string[]): ts.Program {
  return ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    strict: true,
    noEmit: true,
    // The compiler's own declarations, most of all the DOM's, would take half of the time.
    skipDefaultLibCheck: true,
    types: ['node'],
    typeRoots: [join(CHECKOUT, 'node_modules/@types')],
  })
}

/** What the compiler says against any of the files, and against the declarations that they import. */
export function faultsOf(program: ts.Program): string {
  return ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), {
    getCanonicalFileName: name => name,
    getCurrentDirectory: () => CHECKOUT,
    getNewLine: () => '\n',
  })
}

export function exportsOf(program: ts.Program, file: string): string[] {
  const checker = program.getTypeChecker()
  const source = program.getSourceFile(file)
  const symbol = source && checker.getSymbolAtLocation(source)
  if (symbol === undefined) throw new Error(`${file} exports nothing`)
  return checker.getExportsOfModule(symbol).map(({ name }) => name)
}

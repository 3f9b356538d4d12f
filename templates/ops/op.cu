%{indent}// %{step} [%{id}]
%{indent}at_op<%{index}>(%{iteration});
%{text}
